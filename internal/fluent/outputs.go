package fluent

import (
	"cmp"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/connect/local"
	"github.com/reprisehq/reprise/internal/connect/ship"
	"github.com/reprisehq/reprise/internal/plugin"
	"github.com/reprisehq/reprise/internal/record"
)

// outputs are what delivers for each output that is declared.
var outputs = map[string]func(l *loader, v *plugin.Values) (connect.Sink, error){
	"http": func(l *loader, v *plugin.Values) (connect.Sink, error) {
		o := ship.DefaultHTTP()
		targetOf(v, &o.Target)
		o.ResponseTimeout = cmp.Or(v.Span("http.response_timeout"), ship.TimeoutMax)
		o.Proxy = v.Text("proxy")
		o.Method, o.URI, o.Format = v.Text("http_method"), v.Text("uri"), v.Text("format")
		o.DateKey, o.DateForm = v.Text("json_date_key"), record.DateForm(v.Text("json_date_format"))
		o.EscapeUnicode = l.service.Flag("json.escape_unicode")
		o.Compress, o.HeaderTag = v.Text("compress"), v.Text("header_tag")
		o.DuplicatedHeaders, o.LogResponsePayload = v.Flag("allow_duplicated_headers"), v.Flag("log_response_payload")
		o.BodyKey, o.HeadersKey = v.Text("body_key"), v.Text("headers_key")
		for _, s := range v.All("header") {
			name, value := s.Parts()[0], ""
			if len(s.Parts()) > 1 {
				value = s.Parts()[1]
			}
			o.Header = append(o.Header, [2]string{name, value})
		}
		codes, err := ship.ParseCodes(v.Text("codes"))
		if err != nil {
			return nil, err
		}
		o.Codes = codes
		return sinkOf(ship.NewHTTP(o))
	},
	"es": func(l *loader, v *plugin.Values) (connect.Sink, error) {
		o := ship.DefaultES()
		targetOf(v, &o.Target)
		o.Path, o.Pipeline, o.Compress = v.Text("path"), v.Text("pipeline"), v.Text("compress")
		o.APIKey, o.CloudID, o.CloudAuth = v.Text("http_api_key"), v.Text("cloud_id"), v.Text("cloud_auth")
		o.BufferSize = v.Size("buffer_size")
		o.Index, o.Type, o.SuppressType = v.Text("index"), v.Text("type"), v.Flag("suppress_type_name")
		o.LogstashFormat, o.LogstashPrefix = v.Flag("logstash_format"), v.Text("logstash_prefix")
		o.LogstashSeparator, o.LogstashPrefixKey = v.Text("logstash_prefix_separator"), v.Text("logstash_prefix_key")
		o.LogstashDateFormat, o.CurrentTimeIndex = v.Text("logstash_dateformat"), v.Flag("current_time_index")
		o.TimeKey, o.TimeKeyFormat, o.TimeKeyNanos = v.Text("time_key"), v.Text("time_key_format"), v.Flag("time_key_nanos")
		o.IncludeTag, o.TagKey, o.ReplaceDots = v.Flag("include_tag_key"), v.Text("tag_key"), v.Flag("replace_dots")
		o.IDKey, o.GenerateID, o.WriteOperation = v.Text("id_key"), v.Flag("generate_id"), v.Text("write_operation")
		o.EscapeUnicode, o.Now = l.service.Flag("json.escape_unicode"), l.Now
		return sinkOf(ship.NewES(o))
	},
	"stdout": func(l *loader, v *plugin.Values) (connect.Sink, error) {
		o := local.DefaultStdout(l.Stdout)
		if o.Format = v.Text("format"); o.Format == "text" {
			o.Format = ""
		}
		o.DateKey, o.DateForm = v.Text("json_date_key"), record.DateForm(v.Text("json_date_format"))
		o.EscapeUnicode = l.service.Flag("json.escape_unicode")
		return sinkOf(local.NewStdout(o))
	},
	"file": func(l *loader, v *plugin.Values) (connect.Sink, error) {
		o := local.DefaultFile()
		o.Path, o.File, o.Format, o.Mkdir = v.Text("path"), v.Text("file"), v.Text("format"), v.Flag("mkdir")
		o.Delimiter, o.LabelDelimiter = v.Text("delimiter"), v.Text("label_delimiter")
		o.Template, o.ColumnNames = v.Text("template"), v.Flag("csv_column_names")
		o.Rotate, o.RotateMaxSize = v.Flag("rotate"), v.Size("rotate_max_size")
		o.RotateMaxFiles, o.RotateGzip = int(v.Int("rotate_max_files")), v.Flag("rotate_gzip")
		o.EscapeUnicode, o.Now = l.service.Flag("json.escape_unicode"), l.Now
		return sinkOf(local.NewFile(o))
	},
	"counter": func(l *loader, _ *plugin.Values) (connect.Sink, error) { return local.NewCounter(l.Stdout, l.Now), nil },
	"null":    func(*loader, *plugin.Values) (connect.Sink, error) { return &local.Null{}, nil },
}

// targetOf is what outputs have in common that connect to a host by HTTP.
func targetOf(v *plugin.Values, t *ship.Target) {
	t.Host, t.Port = v.Text("host"), int(v.Int("port"))
	t.User, t.Password = v.Text("http_user"), v.Text("http_passwd")
	t.ConnectTimeout = cmp.Or(v.Span("net.connect_timeout"), ship.TimeoutMax)
	t.Keepalive, t.KeepaliveIdle = v.Flag("net.keepalive"), cmp.Or(v.Span("net.keepalive_idle_timeout"), ship.TimeoutMax)
	t.TLS = ship.TLS{
		On: v.Flag("tls"), Verify: v.Flag("tls.verify"), VerifyHostname: true, VHost: v.Text("tls.vhost"),
		CAFile: v.Text("tls.ca_file"), CertFile: v.Text("tls.crt_file"), KeyFile: v.Text("tls.key_file"),
	}
}
