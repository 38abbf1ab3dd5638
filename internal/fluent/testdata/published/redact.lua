function redact(tag, timestamp, record)
  local text = record["message"]
  if text == nil then
    return 0, timestamp, record
  end
  record["message"] = string.gsub(text, "%d%d%d%d%d%d%d%d%d%d%d%d(%d%d%d%d)", "****%1")
  return 2, timestamp, record
end
