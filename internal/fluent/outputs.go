package fluent

import (
	"cmp"

	"github.com/reprisehq/reprise/internal/connect"
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
		return sinkOf(ship.NewHTTP(o))
	},
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
