package parser

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/record"
)

var epoch = record.Time{Sec: 1448403340}

// parse parses a text and returns the record as JSON, behind its time, if that
// is not epoch.
func parse(t testing.TB, o Options, text string) string {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	out, at, err := p.Parse([]byte("before"), []byte(text), epoch)
	if err != nil {
		if string(out) != "before" || at != epoch {
			t.Errorf("%s: %q was written before the error", o.Name, out)
		}
		return err.Error()
	}
	raw := strings.TrimPrefix(string(out), "before")
	if rest, err := record.Skip([]byte(raw)); err != nil || len(rest) > 0 {
		t.Fatalf("%s: %x is no value, %v", o.Name, raw, err)
	}
	got := string(record.AppendJSON(nil, []byte(raw), false))
	if at != epoch {
		got = at.Go().Format(time.RFC3339Nano) + " " + got
	}
	return got
}

func TestFormats(t *testing.T) {
	no := ErrNoFit.Error()
	abc := Options{Format: "regex", Regex: `^(?<a>\S*) (?<b>\S*)(?: (?<c>.+))?$`}
	typed := abc
	typed.Types = "a:integer,b:float c:bool"
	hex := Options{Format: "regex", Regex: `(?<a>.*),(?<b>.*)`, Types: "a:hex b:hex"}
	empty := abc
	empty.KeepEmptyValues = true
	bare := Options{Format: "logfmt", LogfmtNoBareKeys: true}
	timed := Options{Format: "json", TimeFormat: "%Y-%m-%dT%H:%M:%S.%L%z"}
	kept := timed
	kept.TimeKeep, kept.TimeKey = true, "t"
	seconds := Options{Format: "json", TimeFormat: "%s.%L", TimeLenient: true}
	for _, row := range []struct {
		name, text, want string
		o                Options
	}{
		{"json", ` {"a":1,"b":{"c":[true]}} `, `{"a":1,"b":{"c":[true]}}`, Options{Format: "json"}},
		{"json that is no object", `[1]`, no, Options{Format: "json"}},
		{"json that is none", `{"a":`, no, Options{Format: "json"}},
		{"no json", `a line`, no, Options{Format: "json"}},
		{"the time of json", `{"time":"2020-01-02T03:04:05.5+0100","a":1}`, `2020-01-02T02:04:05.5Z {"a":1}`, timed},
		{"which is kept", `{"t":"2020-01-02T03:04:05.5Z","a":1}`, `2020-01-02T03:04:05.5Z {"t":"2020-01-02T03:04:05.5Z","a":1}`, kept},
		{"which is none", `{"time":"yesterday","a":1}`, `{"time":"yesterday","a":1}`, timed},
		{"which is missing", `{"a":1}`, `{"a":1}`, timed},
		{"which is a number", `{"time":1577934245.25}`, `2020-01-02T03:04:05.25Z {}`, seconds},
		{"which is a whole number", `{"time":1577934245}`, `2020-01-02T03:04:05Z {}`, seconds},
		{"which is a map", `{"time":{}}`, `{"time":{}}`, seconds},
		{"regex", "x y z z", `{"a":"x","b":"y","c":"z z"}`, abc},
		{"regex without a part", "x y", `{"a":"x","b":"y"}`, abc},
		{"an empty value is left out", " y", `{"b":"y"}`, abc},
		{"or kept", " y", `{"a":"","b":"y"}`, empty},
		{"nothing at all", " ", no, abc},
		{"regex that is not found", "x", no, abc},
		{"types", "12 1.5 TRUE", `{"a":12,"b":1.5,"c":true}`, typed},
		{"types that begin as numbers", "12ms 1.5e1x yes", `{"a":12,"b":15.0,"c":"yes"}`, typed},
		{"types of no numbers", "- - false", `{"a":0,"b":0.0,"c":false}`, typed},
		{"types of large numbers", "99999999999999999999 -1e999", `{"a":9223372036854775807,"b":-1e+99}`, typed},
		{"hex", "ff,0xFF", `{"a":255,"b":255}`, hex},
		{"hex of none", "zz,-1", `{"a":0,"b":1}`, hex},
		{"logfmt", `a=1 b="x \"y\"\n" c= d e=f"g`, `{"a":"1","b":"x \"y\"\n","d":true,"e":"f\"g"}`, Options{Format: "logfmt"}},
		{"logfmt with a quote that does not end", `a="x y`, `{"a":"x y"}`, Options{Format: "logfmt"}},
		{"logfmt with garbage", `= "" a=1`, `{"a":"1"}`, Options{Format: "logfmt"}},
		{
			"logfmt of more than 15", "a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1 j=1 k=1 l=1 m=1 n=1 o=1 p=1",
			`{"a":"1","b":"1","c":"1","d":"1","e":"1","f":"1","g":"1","h":"1","i":"1","j":"1","k":"1","l":"1","m":"1","n":"1","o":"1","p":"1"}`,
			Options{Format: "logfmt"},
		},
		{"logfmt without bare keys", "a=1 b", no, bare},
		{"logfmt of nothing", ` `, no, Options{Format: "logfmt"}},
		{"ltsv", "host:127.0.0.1\tstatus:200\treq:GET / HTTP/1.1\tempty:\tnocolon\r\n", `{"host":"127.0.0.1","status":200,"req":"GET / HTTP/1.1"}`, Options{Format: "ltsv", Types: "status:integer"}},
		{"the time of ltsv", "time:[10/Jul/2018:13:27:05 +0200]\ta:b", `2018-07-10T11:27:05Z {"a":"b"}`, Options{Format: "ltsv", TimeFormat: "[%d/%b/%Y:%H:%M:%S %z]"}},
		{"no ltsv", "a line", no, Options{Format: "ltsv"}},
	} {
		if got := parse(t, row.o, row.text); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestDecoders(t *testing.T) {
	as := func(rules ...string) (decoders []Decoder) {
		for _, rule := range rules {
			decoders = append(decoders, Decoder{As: true, Rule: rule})
		}
		return decoders
	}
	plain := []Decoder{{Rule: "json log"}}
	for _, row := range []struct {
		name, text, want string
		decoders         []Decoder
	}{
		{"json as", `{"log":"{\"a\":[1]}","x":1}`, `{"log":{"a":[1]},"x":1}`, as("json log")},
		{"json as of no JSON", `{"log":"text"}`, `{"log":"text"}`, as("json log")},
		{"json as of a number", `{"log":"5"}`, `{"log":"5"}`, as("json log")},
		{"json beside", `{"log":"{\"a\":1,\"x\":2}","x":1}`, `{"log":"{\"a\":1,\"x\":2}","x":2,"a":1}`, plain},
		{"json beside of an array", `{"log":"[1]"}`, `{"log":"[1]"}`, plain},
		{"what is no text", `{"log":7}`, `{"log":7}`, as("json log")},
		{"what is not there", `{"a":7}`, `{"a":7}`, as("json log")},
		{"escaped", `{"log":"a\\tb\\n\\q\\u00e4\\"}`, `{"log":"a\tb\n\\q\\u00e4\\"}`, as("escaped log")},
		{"escaped_utf8", `{"log":"\\u0009\\u00e4\\ud83d\\ude00\\U0001F600\\x41\\101\\ud800\\u12"}`, `{"log":"\tä😀😀AA` + "\uFFFD" + `\\u12"}`, as("escaped_utf8 log")},
		{"escaped_utf8, then json", `{"log":"{\\\"a\\\":1}"}`, `{"log":{"a":1}}`, as("escaped_utf8 log do_next", "json log")},
		{"json, else escaped", `{"log":"a\\tb"}`, `{"log":"a\tb"}`, as("json log try_next", "escaped log")},
		{"json is enough", `{"log":"{\"a\":\"x\\\\ty\"}"}`, `{"log":{"a":"x\\ty"}}`, as("json log try_next", "escaped log")},
		{"the first ends it", `{"log":"x\\t{"}`, `{"log":"x\t{"}`, as("escaped log", "json log")},
		{"mysql_quoted", `{"log":"'it\\'s \\% \\n \\0 \\\\'"}`, `{"log":"it's \\% \n ` + `\u0000` + ` \\"}`, as("mysql_quoted log")},
		{"mysql_quoted without quotes", `{"log":"it\\'s"}`, `{"log":"it\\'s"}`, as("mysql_quoted log")},
	} {
		if got := parse(t, Options{Format: "json", DecodeFields: row.decoders}, row.text); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestTimes(t *testing.T) {
	now := record.At(time.Date(2021, 1, 5, 12, 0, 0, 0, time.UTC))
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		format, text, want string
		zone               *time.Location
		lenient            bool
	}{
		{format: "%Y-%m-%dT%H:%M:%S.%L", text: "2018-03-09T01:01:44.851160855Z", want: "2018-03-09T01:01:44.851160855Z"},
		{format: "%Y-%m-%dT%H:%M:%S.%LZ", text: "2017-05-17T15:44:31.187512963Z", want: "2017-05-17T15:44:31.187512963Z"},
		{format: "%Y-%m-%dT%H:%M:%S.%L%z", text: "2018-03-09T01:01:44.85116085512+05:30", want: "2018-03-08T19:31:44.851160855Z"},
		{format: "%d/%b/%Y:%H:%M:%S %z", text: "29/Jul/2015:10:27:10 -0300", want: "2015-07-29T13:27:10Z"},
		{format: "%b %d %H:%M:%S", text: "Jan  2 03:04:05", want: "2021-01-02T03:04:05Z"},
		{format: "%b %d %H:%M:%S", text: "Dec 31 23:59:59", want: "2020-12-31T23:59:59Z"}, // of last year, not of this
		{format: "%b %d %H:%M:%S", text: "Jan  2 03:04:05", want: "2021-01-02T02:04:05Z", zone: berlin},
		{format: "%H:%M:%S", text: "01:02:03", want: "2021-01-05T01:02:03Z"},
		{format: "%s", text: "1577934245", want: "2020-01-02T03:04:05Z"},
		{format: "%s.%L", text: "1577934245.125", want: "2020-01-02T03:04:05.125Z"},
		{format: "%s.%L", text: "1577934245", want: ""},
		{format: "%s.%L", text: "1577934245", want: "2020-01-02T03:04:05Z", lenient: true},
		{format: "%Y-%m-%d %H:%M:%S.%L %z", text: "2020-01-02 03:04:05 +0000", want: "2020-01-02T03:04:05Z", lenient: true},
		{format: "%F %T", text: "2020-01-02 03:04:05", want: "2020-01-02T03:04:05Z"},
		{format: "%y%j", text: "20032", want: "2020-02-01T00:00:00Z"},
		{format: "%Y-%m-%d %I:%M %p", text: "2020-01-02 12:30 AM", want: "2020-01-02T00:30:00Z"},
		{format: "%Y-%m-%d %I:%M %p", text: "2020-01-02 01:30 pm", want: "2020-01-02T13:30:00Z"},
		{format: "%A, %d %B %Y %%", text: "Thursday, 02 January 2020 %", want: "2020-01-02T00:00:00Z"},
		{format: "%Y-%m-%d %H:%M:%S %Z", text: "2020-01-02 03:04:05 PST", want: "2020-01-02T11:04:05Z"},
		{format: "%Y-%m-%d %H:%M:%S %Z", text: "2020-01-02 03:04:05 XYZ"},
		{format: "%Y-%m-%d", text: "2020-13-02"},
		{format: "%Y-%m-%d", text: "2020-1x-02"},
		{format: "%Y-%m-%d", text: ""},
		{format: "%b", text: "Xyz"},
		{format: "%p", text: "xm"},
		{format: "%z", text: "+1"},
		{format: "%%", text: "x"},
	} {
		zone := time.UTC
		if row.zone != nil {
			zone = row.zone
		}
		f, err := newTimeFormat(row.format, zone, row.lenient)
		if err != nil {
			t.Errorf("%s: %v", row.format, err)
			continue
		}
		got := ""
		if at, ok := f.read([]byte(row.text), now); ok {
			got = at.Go().Format(time.RFC3339Nano)
		}
		if got != row.want {
			t.Errorf("%s of %q: %s, want %s", row.format, row.text, got, row.want)
		}
	}
}

func TestSettingsThatAreNoneAreRefusedAllAtOnce(t *testing.T) {
	for _, row := range []struct {
		o    Options
		want []string
	}{
		{Options{Name: "p"}, []string{"parser p", `format ""`, "json, regex, logfmt and ltsv"}},
		{Options{Format: "regex"}, []string{"needs a regex"}},
		{Options{Format: "regex", Regex: "a"}, []string{"(?<name>...)"}},
		{Options{Format: "regex", Regex: "("}, []string{"("}},
		{Options{Format: "json", Regex: "a"}, []string{"is for format regex"}},
		{Options{Format: "json", TimeFormat: "%Q"}, []string{"%Q"}},
		{Options{Format: "json", TimeFormat: "%"}, []string{"%"}},
		{Options{Format: "json", TimeFormat: "%s", TimeOffset: "5h"}, []string{"+0200"}},
		{
			Options{Format: "xml", Types: "a:date", TimeFormat: "%Q", DecodeFields: []Decoder{{Rule: "json"}, {Rule: "escaped log"}, {As: true, Rule: "gzip log"}, {As: true, Rule: "json log next"}}},
			[]string{`"xml"`, `"date"`, "%Q", `"json" is not`, "write decode_field_as", `"gzip"`, `"next"`},
		},
		{Options{Format: "json", Types: "a"}, []string{"field:type"}},
	} {
		_, err := New(row.o)
		for _, want := range row.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", row.o, err, want)
			}
		}
	}
}

// A time without a zone is of Time_Offset, or of the system if that is wanted.
func TestZonesOfTimesThatNameNone(t *testing.T) {
	o := Options{Format: "json", TimeFormat: "%Y-%m-%d %H:%M:%S", TimeOffset: "-0600"}
	if got := parse(t, o, `{"time":"2020-01-02 03:04:05"}`); got != `2020-01-02T09:04:05Z {}` {
		t.Errorf("time_offset: %s", got)
	}
	o.TimeOffset, o.TimeSystemTimezone, o.System = "", true, time.FixedZone("", 7200)
	if got := parse(t, o, `{"time":"2020-01-02 03:04:05"}`); got != `2020-01-02T01:04:05Z {}` {
		t.Errorf("time_system_timezone: %s", got)
	}
}

func TestBuiltInParsersReadTheirFormats(t *testing.T) {
	all := map[string]Options{}
	for _, o := range BuiltIn() {
		all[o.Name] = o
	}
	id := strings.Repeat("0123456789abcdef", 4)
	for _, row := range []struct{ name, text, want string }{
		{
			"apache", `192.168.2.20 - - [29/Jul/2015:10:27:10 -0300] "GET /cgi-bin/try/ HTTP/1.0" 200 3395`,
			`2015-07-29T13:27:10Z {"host":"192.168.2.20","user":"-","method":"GET","path":"/cgi-bin/try/","code":"200","size":"3395"}`,
		},
		{
			"apache2", `10.0.0.1 - bob [29/Jul/2015:10:27:10 +0000] "GET /a b HTTP/1.1" 404 - "http://x/" "curl/7 (x)"`,
			`2015-07-29T10:27:10Z {"host":"10.0.0.1","user":"bob","method":"GET","path":"/a b","code":"404","size":"-","referer":"http://x/","agent":"curl/7 (x)"}`,
		},
		{
			"apache_error", `[Fri Sep 09 10:42:29.902022 2011] [core:error] [pid 35708:tid 4328636416] [client 72.15.99.187] File does not exist: /usr/x`,
			`{"time":"Sep 09 10:42:29.902022 2011","level":"core:error","pid":"35708:tid 4328636416","client":"72.15.99.187","message":"File does not exist: /usr/x"}`,
		},
		{
			"nginx", `93.180.71.3 - - [17/May/2015:08:05:32 +0000] "GET /downloads/product_1 HTTP/1.1" 304 0 "-" "Debian APT-HTTP/1.3"`,
			`2015-05-17T08:05:32Z {"remote":"93.180.71.3","host":"-","user":"-","method":"GET","path":"/downloads/product_1","code":"304","size":"0","referer":"-","agent":"Debian APT-HTTP/1.3"}`,
		},
		{
			"k8s-nginx-ingress", `10.1.1.1 - - [17/May/2015:08:05:32 +0000] "GET / HTTP/2.0" 200 612 "-" "curl/7.8" 38 0.002 [default-web-80] [] 10.2.0.5:80, 10.2.0.6:80 612, 0 0.001, 0.002 200, 502 8f3a`,
			`2015-05-17T08:05:32Z {"host":"10.1.1.1","user":"-","method":"GET","path":"/","code":"200","size":"612","referer":"-","agent":"curl/7.8","request_length":"38","request_time":"0.002","proxy_upstream_name":"default-web-80","upstream_addr":"10.2.0.5:80, 10.2.0.6:80","upstream_response_length":"612, 0","upstream_response_time":"0.001, 0.002","upstream_status":"200, 502","reg_id":"8f3a"}`,
		},
		{"json", `{"time":"17/May/2015:08:05:32 +0000","a":1}`, `2015-05-17T08:05:32Z {"a":1}`},
		{"logfmt", `level=info msg="a b"`, `{"level":"info","msg":"a b"}`},
		{
			"docker", `{"log":"x\n","stream":"stdout","time":"2018-03-09T01:01:44.851160855Z"}`,
			`2018-03-09T01:01:44.851160855Z {"log":"x\n","stream":"stdout","time":"2018-03-09T01:01:44.851160855Z"}`,
		},
		{
			"docker-daemon", `time="2020-01-02T03:04:05.5Z" level=info msg="a \"b\"" id=1`,
			`2020-01-02T03:04:05.5Z {"time":"2020-01-02T03:04:05.5Z","level":"info","msg":"a \\\"b\\\""}`,
		},
		{
			"cri", `2020-01-02T03:04:05.5+01:00 stderr F a line`,
			`2020-01-02T02:04:05.5Z {"time":"2020-01-02T03:04:05.5+01:00","stream":"stderr","logtag":"F","message":"a line"}`,
		},
		{
			"syslog-rfc5424", `<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" eventSource="App]"][x@1 a="b"] An event`,
			`2003-10-11T22:14:15.003Z {"pri":"165","time":"2003-10-11T22:14:15.003Z","host":"mymachine.example.com","ident":"evntslog","pid":"-","msgid":"ID47","extradata":"[exampleSDID@32473 iut=\"3\" eventSource=\"App]\"][x@1 a=\"b\"]","message":"An event"}`,
		},
		{
			"syslog-rfc5424", `<34>1 2003-10-11T22:14:15Z host su 7 - - 'su root' failed`,
			`2003-10-11T22:14:15Z {"pri":"34","time":"2003-10-11T22:14:15Z","host":"host","ident":"su","pid":"7","msgid":"-","extradata":"-","message":"'su root' failed"}`,
		},
		{
			"syslog-rfc3164-local", `<34>Oct 11 22:14:15 su[17]: 'su root' failed`,
			`2015-10-11T22:14:15Z {"pri":"34","time":"Oct 11 22:14:15","ident":"su","pid":"17","message":"'su root' failed"}`,
		},
		{
			"syslog-rfc3164", `<13>Oct 1 22:14:15 web app-1: started`,
			`2015-10-01T22:14:15Z {"pri":"13","time":"Oct 1 22:14:15","host":"web","ident":"app-1","message":"started"}`,
		},
		{
			"k8s-nginx-ingress", `10.1.1.1 - [10.1.1.2] - - [17/May/2015:08:05:32 +0000] "GET / HTTP/1.1" 200 612 "-" "curl/7.8" 38 0.002 [web-80] 10.2.0.5:80 612 0.001 200 8f3a`,
			`2015-05-17T08:05:32Z {"host":"10.1.1.1","real_ip":"10.1.1.2","user":"-","method":"GET","path":"/","code":"200","size":"612","referer":"-","agent":"curl/7.8","request_length":"38","request_time":"0.002","proxy_upstream_name":"web-80","upstream_addr":"10.2.0.5:80","upstream_response_length":"612","upstream_response_time":"0.001","upstream_status":"200","reg_id":"8f3a"}`,
		},
		{
			"syslog-rfc3164", `<34>Oct  1 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8`,
			`2015-10-01T22:14:15Z {"pri":"34","time":"Oct  1 22:14:15","host":"mymachine","ident":"su","message":"'su root' failed for lonvick on /dev/pts/8"}`,
		},
		{
			"mongodb", `2018-04-12T06:23:40.123+0000 I NETWORK  [conn1] end connection 127.0.0.1 150ms`,
			`2018-04-12T06:23:40.123Z {"time":"2018-04-12T06:23:40.123+0000","severity":"I","component":"NETWORK","context":"conn1","message":"end connection 127.0.0.1","ms":"150"}`,
		},
		{
			"envoy", `[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80"`,
			`2016-04-15T20:17:00.31Z {"start_time":"2016-04-15T20:17:00.310Z","method":"POST","path":"/api/v1/locations","protocol":"HTTP/2","code":"204","response_flags":"-","bytes_received":"154","bytes_sent":"0","duration":"226","x_envoy_upstream_service_time":"100","x_forwarded_for":"10.0.35.28","user_agent":"nsq2http","request_id":"cc21d9b0","authority":"locations","upstream_host":"tcp://10.0.2.1:80"}`,
		},
		{
			"istio-envoy-proxy", `[2020-11-25T21:26:18.409Z] "GET /status/418 HTTP/1.1" 418 - via_upstream - "-" 0 135 3 1 "-" "curl/7.73" "84961386" "httpbin:8000" "127.0.0.1:80" inbound|8000|| 127.0.0.1:41854 10.44.1.27:80 10.44.1.23:37652 outbound_.8000_ default`,
			`2020-11-25T21:26:18.409Z {"start_time":"2020-11-25T21:26:18.409Z","method":"GET","path":"/status/418","protocol":"HTTP/1.1","response_code":"418","response_flags":"-","response_code_details":"via_upstream","connection_termination_details":"-","upstream_transport_failure_reason":"-","bytes_received":"0","bytes_sent":"135","duration":"3","x_envoy_upstream_service_time":"1","x_forwarded_for":"-","user_agent":"curl/7.73","request_id":"84961386","authority":"httpbin:8000","upstream_host":"127.0.0.1:80","upstream_cluster":"inbound|8000||","upstream_local_address":"127.0.0.1:41854","downstream_local_address":"10.44.1.27:80","downstream_remote_address":"10.44.1.23:37652","requested_server_name":"outbound_.8000_","route_name":"default"}`,
		},
		{
			"kube-custom", `kube.web-7d4b9-x.v1_prod_app-main-` + id + `.log`,
			`{"tag":"kube","pod_name":"web-7d4b9-x.v1","namespace_name":"prod","container_name":"app-main","docker_id":"` + id + `"}`,
		},
	} {
		if got := parse(t, all[row.name], row.text); got != row.want {
			t.Errorf("%s:\n%s, want\n%s", row.name, got, row.want)
		}
	}
	for name, o := range all {
		p, err := New(o)
		if err != nil || p.Notice() != "" {
			t.Errorf("%s: %v, %s", name, err, p.Notice())
		}
		if got := parse(t, o, "= a line of no form"); !strings.Contains(got, "does not have the form") && name != "logfmt" {
			t.Errorf("%s reads anything: %s", name, got)
		}
	}
}

// FuzzParse: any line, any parser: a record or an error, in bounded time.
func FuzzParse(f *testing.F) {
	var parsers []*Parser
	options := append(BuiltIn(),
		Options{Format: "ltsv", TimeFormat: "%d/%b/%Y:%H:%M:%S %z", Types: "a:integer b:float c:hex d:bool"},
		Options{Format: "logfmt", TimeFormat: "%s.%L", TimeLenient: true, Types: "a:float", KeepEmptyValues: true},
		Options{Format: "regex", Regex: `^(?<a>a++)(?<b>.*)(?=c)`},
		Options{Format: "json", DecodeFields: []Decoder{{true, "escaped_utf8 log do_next"}, {true, "mysql_quoted log do_next"}, {true, "json log"}, {false, "json a"}}})
	for _, o := range options {
		p, err := New(o)
		if err != nil {
			f.Fatal(err)
		}
		parsers = append(parsers, p)
	}
	for i, text := range []string{`{"log":"'{\"a\":1}'","a":"{\"b\":2}","time":5}`, "a:1\tb:2e5\ttime:x", `a=1 b="\u00e4" c`, "aab\xffc", "<3>1 x - - - - [a b=\"]\"] m"} {
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, n uint8, text string) {
		if len(text) > 1<<12 {
			return
		}
		out, _, err := parsers[int(n)%len(parsers)].Parse(nil, []byte(text), epoch)
		if err != nil {
			if !errors.Is(err, ErrNoFit) && !errors.Is(err, ErrSlow) || len(out) > 0 {
				t.Fatalf("%q: %x, %v", text, out, err)
			}
			return
		}
		if rest, err := record.Skip(out); err != nil || len(rest) > 0 || !record.IsMap(out) {
			t.Fatalf("%q became %x, %v", text, out, err)
		}
		if out := record.AppendJSON(nil, out, true); !jsontext.Value(out).IsValid(jsontext.AllowDuplicateNames(true)) {
			t.Fatalf("%q became %s", text, out)
		}
	})
}

// FuzzOptions: any expression and any format of times is refused, or works.
func FuzzOptions(f *testing.F) {
	f.Add(`/^(?<a>\h+)[[:alpha:]]*+$/m`, "%Y-%m-%dT%H:%M:%S.%L%z", "2020-01-02T03:04:05.5Z")
	f.Add(`(?<time>(?i).*)`, "%b %e %p %j %Z", "Jan 5 pm 300 PST")
	f.Fuzz(func(_ *testing.T, expr, format, text string) {
		if len(expr) > 60 || len(text) > 60 || strings.ContainsAny(expr, "{") {
			return
		}
		p, err := New(Options{Format: "regex", Regex: expr, TimeFormat: format, TimeLenient: len(text)%2 == 0})
		if err == nil {
			p.Parse(nil, []byte(text), epoch) //nolint:errcheck // it comes back
		}
		p, err = New(Options{Format: "json", TimeFormat: format})
		if err == nil {
			p.Parse(nil, []byte(`{"time":"`+text+`"}`), epoch) //nolint:errcheck // it comes back
		}
	})
}

func BenchmarkParse(b *testing.B) {
	lines := map[string]string{
		"apache": `192.168.2.20 - - [29/Jul/2015:10:27:10 -0300] "GET /cgi-bin/try/ HTTP/1.0" 200 3395`,
		"docker": `{"log":"a line of some length as they are usual in logs\n","stream":"stdout","time":"2018-03-09T01:01:44.851160855Z"}`,
		"cri":    `2020-01-02T03:04:05.5+01:00 stderr F a line of some length as they are usual in logs`,
		"logfmt": `time="2020-01-02T03:04:05.5Z" level=info msg="a line of some length" id=1`,
	}
	for _, o := range BuiltIn() {
		if line, ok := lines[o.Name]; ok {
			b.Run(o.Name, func(b *testing.B) {
				p, err := New(o)
				if err != nil {
					b.Fatal(err)
				}
				var dst []byte
				b.ReportAllocs()
				for b.Loop() {
					if dst, _, err = p.Parse(dst[:0], []byte(line), epoch); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
