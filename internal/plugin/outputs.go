package plugin

import "slices"

// Outputs declares those that are here.
func Outputs() []Plugin {
	return []Plugin{httpOutput(), es(), stdout(), file(), forwardOutput(), kafkaOutput(), null(), counter(), queue()}
}

func httpOutput() Plugin {
	p := output("http", "sends records by HTTP", []Property{
		text("uri", "/", "path of the requests"),
		word("http_method", "POST", "method of the requests", "POST", "PUT"),
		word("format", "json", "format of the body", "json", "json_stream", "json_lines", "gelf", "msgpack"),
		parts("header", 1, 2, "NAME VALUE: header of the requests"),
		text("header_tag", "", "header with the tag"),
		text("http_user", "", "user for basic authentication"),
		text("http_passwd", "", "password of the user"),
		word("compress", "none", "compression of the body", "none", "gzip", "snappy", "zstd"),
		text("codes", "", "what statuses mean that mean something else by default, such as 404=retry 500-503=error; Fluent Bit has no such property"),
		onOff("allow_duplicated_headers", "on", "the same header several times"),
		onOff("log_response_payload", "on", "keep the answer with a failed attempt"),
		span("http.response_timeout", "60s", "time to answer; 0 is no limit"),
		span("http.read_idle_timeout", "0s", "time between two parts of an answer; 0 is no limit"),
		text("proxy", "", "proxy, as http://host:port"),
		text("body_key", "", "key with the body: one request a record"),
		text("headers_key", "", "key with the headers, with body_key"),
	}, asJSON(), gelf(), aws(), []Property{oauth2()}, connecting("127.0.0.1", "80"))
	p.Address = []string{"uri"}
	return p
}

func es() Plugin {
	p := output("es", "writes records into Elasticsearch and OpenSearch", []Property{
		text("index", "fluent-bit", "the index; %Y and the like stand for the time"),
		text("type", "_doc", "type of the documents"),
		onOff("suppress_type_name", "off", "leave the type out, as servers from 8 on want it"),
		onOff("logstash_format", "off", "an index for each day"),
		text("logstash_prefix", "logstash", "beginning of its name"),
		text("logstash_prefix_separator", "-", "what stands behind the beginning"),
		text("logstash_prefix_key", "", "key of the record with the beginning"),
		text("logstash_dateformat", "%Y.%m.%d", "its day"),
		text("time_key", "@timestamp", "key of the time"),
		text("time_key_format", "%Y-%m-%dT%H:%M:%S", "how the time is written"),
		onOff("time_key_nanos", "off", "with nanoseconds"),
		onOff("include_tag_key", "off", "add the tag"),
		text("tag_key", "flb-key", "key of the tag"),
		onOff("generate_id", "off", "make the id from the record, so that it is not there twice"),
		text("id_key", "", "key of the record with the id"),
		word("write_operation", "create", "what is done with a document", "create", "index", "update", "upsert"),
		onOff("replace_dots", "off", "_ for the dots in keys"),
		onOff("current_time_index", "off", "the time of sending in the name of the index"),
		size("buffer_size", "512k", "the longest answer that is read"),
		text("path", "", "what stands before /_bulk"),
		text("pipeline", "", "pipeline of the server"),
		word("compress", "none", "compression of the body", "none", "gzip"),
		text("http_user", "", "user for basic authentication"),
		text("http_passwd", "", "password of the user"),
		text("http_api_key", "", "API key"),
		text("cloud_id", "", "id of a deployment of Elastic Cloud"),
		text("cloud_auth", "", "its user:password"),
		onOff("trace_output", "off", "print requests").idle("an output stdout with the same Match shows records as they pass"),
		onOff("trace_error", "off", "print answers with errors").idle("the answer is with the failed attempt"),
		upstream(),
	}, aws(), connecting("127.0.0.1", "9200"))
	p.Address = []string{"index", "type"}
	return p
}

func stdout() Plugin {
	return output("stdout", "prints records", []Property{
		word("format", "", "how they are printed; by default as text for people", "json", "json_lines", "json_stream", "msgpack"),
	}, asJSON())
}

func file() Plugin {
	return output("file", "writes records into files", []Property{
		text("path", "", "folder of the files"),
		text("file", "", "name of the file; by default the tag"),
		word("format", "out_file", "how they are written", "out_file", "plain", "csv", "ltsv", "template", "msgpack"),
		onOff("mkdir", "off", "make the folder"),
		onOff("sync", "off", "a chunk is delivered only when it survives a power cut; Fluent Bit has no such property"),
		text("template", "{time} {message}", "a line, for the format template"),
		text("delimiter", "", "what stands between fields"),
		text("label_delimiter", "", "what stands behind a label, for the format ltsv"),
		onOff("csv_column_names", "off", "a first line with the names of the columns"),
		onOff("rotate", "off", "begin a new file when one is large enough"),
		size("rotate_max_size", "100M", "how large that is"),
		whole("rotate_max_files", "7", 1, 1e6, "how many old files are kept"),
		onOff("rotate_gzip", "on", "compress old files"),
		onOff("enable_strftime", "off", "%Y and the like in the names stand for the time"),
		whole("max_dynamic_files", "1024", 1, 1e6, "files open at once"),
		word("on_missing_field", "error", "what happens if a field of the name is not there", "error", "fallback", "drop"),
		word("on_limit_reached", "error", "what happens if too many files are open", "error", "fallback", "drop"),
		text("fallback_path", "", "folder for the fallback"),
		text("fallback_file", "", "name for the fallback"),
	})
}

func forwardOutput() Plugin {
	return output("forward", "sends records to Fluent Bit and Fluentd", []Property{
		onOff("require_ack_response", "off", "wait until the other side tells that it has them"),
		onOff("send_options", "off", "send options of the protocol"),
		word("compress", "none", "compression", "none", "gzip", "text"),
		text("shared_key", "", "secret that both sides know"),
		onOff("empty_shared_key", "off", "speak the protocol with a secret that is empty"),
		text("self_hostname", "localhost", "name of this host in the protocol"),
		text("username", "", "user"),
		text("password", "", "password of the user"),
		text("tag", "", "tag instead of that of the records"),
		text("unix_path", "", "path of a socket to send to, instead of a host"),
		onOff("time_as_integer", "off", "time in whole seconds, for old versions of Fluentd"),
		onOff("retain_metadata_in_forward_mode", "on", "send the metadata of records"),
		onOff("fluentd_compat", "off", "metrics and traces as Fluentd reads them").idle("only records are sent"),
		parts("add_option", 2, 2, "NAME VALUE: option of the protocol"),
		upstream(),
	}, connecting("127.0.0.1", "24224"))
}

func kafkaOutput() Plugin {
	return output("kafka", "writes records to topics of Kafka", []Property{
		list("brokers", "127.0.0.1", "host:port of brokers, with commas between them"),
		list("topics", "fluent-bit", "topics, with commas between them; the first one is the default"),
		text("topic_key", "", "key of the record with the topic"),
		onOff("dynamic_topic", "off", "also topics that are not among the topics"),
		word("format", "json", "format of the messages", "json", "msgpack", "gelf", "raw"),
		text("message_key", "", "key of all messages"),
		text("message_key_field", "", "key of the record with the key of its message"),
		text("raw_log_key", "", "key of the record that is the whole message, for the format raw"),
		text("timestamp_key", "@timestamp", "key of the time"),
		word("timestamp_format", "double", "how the time is written", "double", "iso8601", "iso8601_ns"),
		text("client_id", "", "name of this client"),
		text("group_id", "", "group of this client").idle("a producer has no group"),
		text("queue_full_retries", "10", "attempts when the library's queue is full").idle(brokerWaits),
		text("rdkafka.", "", "settings of librdkafka").beginning(),
		text("schema_", "", "schemas of Avro").beginning().gone("Avro is not written; use the format json"),
		text("aws_msk_iam", "", "sign in with AWS").beginning().gone("use SASL/SCRAM or certificates, by rdkafka.sasl.* or rdkafka.ssl.*"),
	}, gelf())
}

func null() Plugin {
	return output("null", "drops records", []Property{
		text("format", "", "how they would be written").idle("nothing is written"),
	})
}

func counter() Plugin {
	return output("counter", "prints how many records came", []Property{
		onOff("event_based", "off", "count by the time of records").idle("what comes is counted"),
	})
}

func queue() Plugin {
	return output("queue", "makes a job of each record, for workers of this server", []Property{
		text("queue", "", "queue of the jobs").required(),
		text("type", "record", "type of the jobs"),
		text("group_key", "", "key of the record with the group of its job, such as $host or $user['id']"),
	}, slices.Clone(asJSON()))
}
