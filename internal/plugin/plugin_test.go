package plugin

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/fluentconf"
)

// load reads a configuration in the classic format.
func load(t *testing.T, text string) (*fluentconf.Config, *fluentconf.Report) {
	t.Helper()
	r := &fluentconf.Report{}
	c := fluentconf.Load("f", nil, fluentconf.Source{
		Read:   func(string, int64) ([]byte, string, error) { return []byte(text), "f", nil },
		Lookup: func(string) (string, bool) { return "", false },
	}, r)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return c, r
}

func read(t *testing.T, text string) (*Values, *fluentconf.Report) {
	t.Helper()
	c, r := load(t, text)
	return All().Read(c.Sections[0], r), r
}

func lines(remarks []fluentconf.Remark) string {
	var all []string
	for _, r := range remarks {
		all = append(all, r.String())
	}
	return strings.Join(all, "\n")
}

// A declaration is whole: it says what it is, its default can be read, no name is hidden by another.
func TestDeclarations(t *testing.T) {
	c := All()
	plugins := []*Plugin{ServiceSection()}
	for _, kind := range []string{fluentconf.Input, fluentconf.Filter, fluentconf.Output} {
		plugins = append(plugins, c.Plugins(kind)...)
	}
	if len(plugins) != 1+8+9+9 {
		t.Errorf("%d plugins", len(plugins))
	}
	for _, p := range plugins {
		if p.What == "" || p.Name != strings.ToLower(p.Name) {
			t.Errorf("%s %s says nothing of itself", p.Kind, p.Name)
		}
		for i := range p.Properties {
			q := &p.Properties[i]
			where := p.Kind + " " + p.Name + " " + q.Name
			for _, name := range append([]string{q.Name}, q.Other...) {
				if q.Prefix {
					name += "x"
				}
				if got := p.Property(name); got != q {
					t.Errorf("%s: %s is hidden by another", where, name)
				}
			}
			if q.What == "" || q.Name != strings.ToLower(q.Name) || q.Required && q.Default != "" || q.Idle != "" && q.Gone != "" || q.Form == Flag && q.Default == "" {
				t.Errorf("%s is not declared well", where)
			}
			if q.Form == Word && len(q.Words) < 1 || q.Form != Word && len(q.Words) > 0 || q.Form == Parts && (q.Least < 1 || q.Most < q.Least) {
				t.Errorf("%s has no words, or no number of parts", where)
			}
			if q.Default != "" {
				if v, err := q.parse(q.Default); err != nil || !q.isDefault(v) {
					t.Errorf("%s: default %s: %v", where, q.Default, err)
				}
			}
		}
		for _, name := range p.Address {
			if p.Property(name) == nil {
				t.Errorf("%s has no %s for its address", p.Name, name)
			}
		}
	}
}

// Every plugin of Fluent Bit (reference 6.1) is here, or is told what to use instead; never both.
func TestEveryPluginOfTheOriginal(t *testing.T) {
	c := All()
	for kind, names := range map[string]string{
		"input":  "blob collectd cpu disk docker docker_events dummy ebpf elasticsearch event_type exec exec_wasi event_tracing_windows fluentbit_logs fluentbit_metrics forward gpu_metrics head health http kafka kmsg kubernetes_events mem mqtt netif nginx_metrics node_exporter_metrics opentelemetry podman_metrics proc process_exporter_metrics prometheus_remote_write prometheus_scrape prometheus_textfile random serial splunk statsd stdin syslog systemd tail tcp thermal udp unix_socket windows_exporter_metrics winevtlog winlog winstat emitter lib storage_backlog stream_processor",
		"filter": "alter_size aws checklist ecs expect geoip2 grep kubernetes log_to_metrics lua modify multiline nest nightfall parser record_modifier rewrite_tag stdout sysinfo tensorflow throttle throttle_size type_converter wasm",
		"output": "azure azure_blob azure_kusto azure_logs_ingestion bigquery chronicle cloudwatch_logs counter datadog es exit file flowcounter forward gcs gelf http influxdb kafka kafka-rest kinesis_firehose kinesis_streams logdna loki nats nrlogs null opensearch opentelemetry oracle_log_analytics pgsql plot prometheus_exporter prometheus_remote_write retry s3 skywalking slack splunk stackdriver stdout syslog tcp td udp vivo_exporter websocket",
	} {
		for _, name := range strings.Fields(names) {
			here, there := c.Find(kind, name) != nil, elsewhere(kind, name) != nil
			if here == there {
				t.Errorf("%s %s: here %v, elsewhere %v", kind, name, here, there)
			}
			if there {
				s := &fluentconf.Section{Kind: kind, Entries: []fluentconf.Entry{{Key: "name", Value: strings.ToUpper(name), At: fluentconf.Place{File: "f", Line: 2}}}}
				r := &fluentconf.Report{}
				want := fmt.Sprintf("f:2: the %s %s of Fluent Bit is not here; ", kind, name)
				if v := c.Read(s, r); v != nil || !strings.HasPrefix(lines(r.Problems()), want) {
					t.Errorf("%s", lines(r.Problems()))
				}
			}
		}
	}
	for _, e := range NotHere() {
		for _, name := range e.Names {
			if c.Find(e.Kind, name) != nil {
				t.Errorf("%s %s is here: take it out of the list", e.Kind, name)
			}
		}
	}
}

func TestRetryLimit(t *testing.T) {
	text, err := os.ReadFile("testdata/pipeline.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct{ Values [][2]any }
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors.Values) < 15 {
		t.Fatalf("%d vectors, %v", len(vectors.Values), err)
	}
	for _, row := range vectors.Values {
		written := "\n  Retry_Limit " + row[0].(string)
		if row[0] == "(unset)" {
			written = ""
		}
		v, r := read(t, "[OUTPUT]\n  Name null"+written)
		got, want := "error", fmt.Sprint(row[1])
		if r.Err() == nil {
			got = fmt.Sprint(v.Retries("retry_limit").Most)
			if v.Retries("retry_limit").Unlimited {
				got = "<nil>"
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s (%v)", row[0], got, want, r.Err())
		}
	}
	// Empty after a variable: as if it were not there.
	v, r := read(t, "[OUTPUT]\n  Name null\n  Retry_Limit ${no}\n")
	if v.Retries("retry_limit") != (Retries{Most: 1}) || r.Err() != nil || v.Has("retry_limit") {
		t.Error(v.Retries("retry_limit"), r.Err())
	}
	if got := lines(r.Notices()); got != "f:3: the variable \"no\" is not set, which is the same as an empty one\nf:3: retry_limit is empty, which is the same as leaving it out" {
		t.Error(got)
	}
}

func TestTypedValues(t *testing.T) {
	v, r := read(t, "[INPUT]\n  NAME Tail\n  Path /a/*.log, /b\n  tag x.*\n  Refresh_Interval 1.5m\n  Buffer_Max_Size 1M\n  Skip_Long_Lines On\n"+
		"  parser_2 b\n  Parser_1 a\n  multiline.parser docker, cri\n  multiline.parser java\n  Storage.Type MEMORY\n")
	if err := r.Err(); err != nil || len(r.Notices()) > 0 {
		t.Fatal(err, r.Notices())
	}
	got := fmt.Sprint(v.List("path"), v.Text("tag"), v.Span("refresh_interval"), v.Span("rotate_wait"), v.Size("buffer_max_size"), v.Size("buffer_chunk_size"),
		v.Flag("skip_long_lines"), v.Flag("read_newly_discovered_files_from_head"), v.List("multiline.parser"), v.Text("storage.type"), v.Text("key"), v.List("exclude_path"), v.Text("db.sync"))
	if got != "[/a/*.log /b]x.*1m30s 5s 1000000 32768 true true [docker cri java]memorylog[]normal" {
		t.Error(got)
	}
	if v.Has("key") || !v.Has("tag") || v.Place("tag").String() != "f:4" || v.Place("key").String() != "f:1" {
		t.Error("what is written is not known")
	}
	unread := func() (names []string) {
		for _, s := range v.Unread() {
			names = append(names, s.Name)
		}
		return names
	}
	if got := unread(); !slices.Equal(got, []string{"parser_2", "parser_1"}) {
		t.Errorf("nobody asked for %v", got)
	}
	if all := v.All("parser_"); len(all) != 2 || all[0].Name != "parser_2" || all[1].Value != "a" || unread() != nil {
		t.Errorf("%+v", all)
	}
	for _, wrong := range []func(){
		func() { v.Text("nope") }, func() { v.Flag("key") }, func() { v.Size("rotate_wait") }, func() { v.Has("parser_1") },
		func() { NewCatalog([]Plugin{{Kind: "input", Name: "a"}, {Kind: "input", Name: "A"}}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a mistake of the program was let through")
				}
			}()
			wrong()
		}()
	}
}

func TestValuesThatAreLeftOut(t *testing.T) {
	v, r := read(t, "[INPUT]\n  Name tail\n  Path a\n  Path b\n  DB x\n  Key ${no}\n  Key k\n  Refresh_Interval x\n")
	if len(r.Problems()) != 1 || fmt.Sprint(v.List("path"), v.Text("key"), v.Span("refresh_interval"), v.Has("refresh_interval"), v.Unread()) != "[a b]k1m0s false []" {
		t.Error(v.List("path"), v.Text("key"), v.Span("refresh_interval"), v.Has("refresh_interval"), v.Unread(), r.Problems())
	}
	v, r = read(t, "[FILTER]\n  Name throttle\n  Rate 2.5\n")
	if v.Number("rate") != 2.5 || r.Err() != nil {
		t.Error(v.Number("rate"), r.Err())
	}
	v, r = read(t, "[OUTPUT]\n  Name null\n  Retry_Limit 1000000\n")
	if v.Retries("retry_limit").Most != retriesMost || r.Err() != nil {
		t.Error(v.Retries("retry_limit"), r.Err())
	}
	v, r = read(t, "[OUTPUT]\n  Name es\n  AWS_Auth off\n  Trace_Error on\n  Index x\n")
	if got := v.Unread(); len(got) != 1 || got[0].Name != "index" || r.Err() != nil {
		t.Errorf("%v %v", got, r.Err())
	}
}

// What is written every day is read without a fault, and what has no effect is told.
func TestAnEverydayConfiguration(t *testing.T) {
	c, r := load(t, `[SERVICE]
    Daemon Off
    Flush 1
    Log_Level info
    Parsers_File /fluent-bit/etc/parsers.conf
    Parsers_File /fluent-bit/etc/conf/custom_parsers.conf
    HTTP_Server On
    HTTP_Listen 0.0.0.0
    HTTP_Port 2020
    Health_Check On
    storage.metrics on

[INPUT]
    Name tail
    Path /var/log/containers/*.log
    multiline.parser docker, cri
    Tag kube.*
    DB /var/log/flb_kube.db
    DB.locking false
    Mem_Buf_Limit 5MB
    Skip_Long_Lines On
    Refresh_Interval 10

[FILTER]
    Name grep
    Match kube.*
    Exclude $kubernetes['labels']['app'] ^fluent

[OUTPUT]
    Name es
    Match kube.*
    Host elasticsearch-master
    Logstash_Format On
    Suppress_Type_Name On
    Buffer_Size False
    Retry_Limit False
    tls On
    tls.verify Off

[OUTPUT]
    Name http
    Match *
    Host logs.example.com
    Port 443
    Uri /v1/logs
    Format json_lines
    Json_Date_Format ISO8601
    Header Authorization Bearer abc
    Compress gzip
    net.dns.resolver LEGACY
    storage.total_limit_size 5G
    Workers 2
`)
	catalog := All()
	if v := ReadService(c.Sections, r); !v.Flag("health_check") {
		t.Error("Health_Check is off")
	}
	var all []*Values
	for _, s := range c.Sections[1:] {
		all = append(all, catalog.Read(s, r))
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	if got := lines(r.Notices()); got != "f:18: db has no effect here: "+positions+"\nf:50: net.dns.resolver has no effect here: "+ownResolver {
		t.Error(got)
	}
	if v := all[2]; v.Size("buffer_size") != 0 || v.Flag("tls.verify") || !v.Retries("retry_limit").Unlimited {
		t.Errorf("%+v", v)
	}
	if v := all[3]; v.Text("json_date_format") != "iso8601" || v.All("header")[0].Parts()[1] != "Bearer abc" || v.Size("storage.total_limit_size") != 5e9 {
		t.Errorf("%+v", v)
	}
}

// Rules that have an order keep it, and are as they are written.
func TestRulesKeepTheirOrder(t *testing.T) {
	v, r := read(t, `[FILTER]
  Name modify
  Add b   "two words" 
  Condition Key_value_equals a x y
  Add_If_Not_Present c d e
  Remove "a key"
  Set a say "x"
`)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range v.All("add", "set", "remove", "condition") {
		got = append(got, s.Name+": "+s.Value)
	}
	if want := `add: b   "two words", condition: Key_value_equals a x y, add: c d e, remove: "a key", set: a say "x"`; strings.Join(got, ", ") != want {
		t.Errorf("%s", strings.Join(got, ", "))
	}
	v, _ = read(t, "[FILTER]\n  Name record_modifier\n  Remove_key a\n  Whitelist_Key b, c\n  remove_key d\n")
	if a, b := v.List("remove_key"), v.List("allowlist_key"); !slices.Equal(a, []string{"a", "d"}) || !slices.Equal(b, []string{"b, c"}) {
		t.Errorf("%q %q", a, b)
	}
	v, _ = read(t, "[OUTPUT]\n  Name kafka\n  Brokers a,b\n")
	if a, b := v.List("brokers"), v.List("topics"); !slices.Equal(a, []string{"a", "b"}) || !slices.Equal(b, []string{"fluent-bit"}) {
		t.Errorf("%q %q", a, b)
	}
}

func TestParts(t *testing.T) {
	v, r := read(t, `[OUTPUT]
  Name http
  Header X-A b  c
  Header "X \"B" d
  Header X-C "e f"
  Header X-D "e" f
  Header X-E "e
  Header X-F
  Header "a"b c
  Header "X\\" "y\"
`)
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range v.All("header") {
		got = append(got, fmt.Sprintf("%q", s.Parts()))
	}
	const want = `["X-A" "b  c"] ["X \"B" "d"] ["X-C" "e f"] ["X-D" "\"e\" f"] ["X-E" "\"e"] ["X-F"] ["\"a\"b" "c"] ["X\\\\" "\"y\\\""]`
	if strings.Join(got, " ") != want {
		t.Errorf("%s, want\n%s", strings.Join(got, " "), want)
	}
	if got := v.List("header"); len(got) != 8 || got[0] != "X-A b  c" {
		t.Errorf("%q", got)
	}
	if got := fields("a b c d", 3); !slices.Equal(got, []string{"a", "b", "c d"}) {
		t.Errorf("%q", got)
	}
	if got := fields("  a\t b  ", 3); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	for _, row := range []struct{ name, text, problems, notices string }{
		{
			"many", "[INPUT]\n  Name tail\n  Pathh /a\n  Refresh_Interval x\n  Buffer_Max_Size 1kX\n  Skip_Long_Lines 1\n  Storage.type disk\n  Tag a\n  TAG b\n  multiline.parser ,\n  tag_regex (\n",
			`f:1: input tail needs path: the files: names or patterns, with commas between them
f:3: input tail has no property "pathh"; did you mean path?
f:4: refresh_interval: "x" must be a number of seconds, or a span of time such as 30s, 5m, 2h or 1d
f:5: buffer_max_size: "1kX" must be a number of bytes, or a size such as 32K, 5M or 1G
f:6: skip_long_lines: "1" must be on or off
f:7: storage.type: "disk" must be one of filesystem, memory, memrb
f:9: tag is there twice, first at f:8; leave one
f:10: multiline.parser: "," must have at least one part
f:11: tag_regex: the regular expression "(": error parsing regexp: missing closing ) in ` + "`(`", "",
		},
		{
			"parts", "[INPUT]\n  Name forward\n  security.users me\n  Tag_Prefix a\n  security.users me \"a b\"\n[OUTPUT]",
			`f:3: security.users: "me" must have 2 parts; write blanks between them`, "",
		},
		{
			"bounds", "[OUTPUT]\n  Name http\n  Port 70000\n  net.connect_timeout 99999999999\n  Workers -1\n  Header\t X\n  net.keepalive_max_recycle 1.5\n  http.response_timeout 100000d\n",
			`f:3: port: "70000" must be a whole number from 1 to 65535
f:4: net.connect_timeout: "99999999999" must be a number of seconds, or a span of time such as 30s, 5m, 2h or 1d
f:5: workers: "-1" must be a whole number from 0 to 1000
f:7: net.keepalive_max_recycle: "1.5" must be a whole number from 0 to 1000000000
f:8: http.response_timeout: "100000d" must be a number of seconds, or a span of time such as 30s, 5m, 2h or 1d`, "",
		},
		{
			"more bounds", "[FILTER]\n  Name throttle\n  Rate 0\n  Interval 0\n  Window 0\n", `f:3: rate: "0" must be a number from 1e-06 to 1e+12
f:4: interval: "0" must be from 0.001 to 1e+06 seconds
f:5: window: "0" must be a whole number from 1 to 1048576`, "",
		},
		{"a size", "[INPUT]\n  Name stdin\n  Buffer_Size 15999\n", `f:3: buffer_size: "15999" must be from 16000 to 1000000000 bytes`, ""},
		{"a larger size", "[INPUT]\n  Name stdin\n  Buffer_Size 1.1G\n", `f:3: buffer_size: "1.1G" must be from 16000 to 1000000000 bytes`, ""},
		{"no size", "[INPUT]\n  Name stdin\n  Buffer_Size x\n", `f:3: buffer_size: "x" must be a number of bytes, or a size such as 32K, 5M or 1G`, ""},
		{"a span", "[INPUT]\n  Name tail\n  Path a\n  Rotate_Wait 20000d\n", `f:4: rotate_wait: "20000d" must be from 0 to 1e+09 seconds`, ""},
		{"retries", "[OUTPUT]\n  Name null\n  Retry_Limit 1000001\n", `f:3: retry_limit: "1000001" must be how many retries follow the first attempt, from 1 to 1000000, or no_limits, or no_retries`, ""},
		{
			"what is needed and empty", "[INPUT]\n  Name tail\n  Path ${no}\n  Nope 1\n  Nope 2\n", "f:1: input tail needs path: the files: names or patterns, with commas between them\nf:4: input tail has no property \"nope\"; take it out\nf:5: input tail has no property \"nope\"; take it out",
			"f:3: the variable \"no\" is not set, which is the same as an empty one\nf:3: path is empty, which is the same as leaving it out",
		},
		{
			"what is not here, unless it is off anyway", "[OUTPUT]\n  Name es\n  AWS_Auth On\n  AWS_Region x\n  Upstream u.conf\n  tls.key_passwd x\n",
			`f:3: aws_auth is not here: requests are not signed for AWS; send to a proxy that signs them, such as aws-sigv4-proxy
f:4: aws_region is not here: requests are not signed for AWS; send to a proxy that signs them, such as aws-sigv4-proxy
f:5: upstream is not here: write an output for each target, or name a load balancer as the host
f:6: tls.key_passwd is not here: take the password off: openssl pkey -in KEY -out NEW`, "",
		},
		{
			"what has no effect", "[OUTPUT]\n  Name es\n  AWS_Auth False\n  Trace_Error On\n  Trace_Output off\n  Log_Level debug\n", "",
			"f:4: trace_error has no effect here: the answer is with the failed attempt\nf:6: log_level has no effect here: one log level holds for the whole server; set Log_Level in [SERVICE]",
		},
		{"no name", "[FILTER]\n  Match *\n", "f:1: this filter has no name; write one, such as Name grep", ""},
		{"two names", "[INPUT]\n  Name dummy\n  Name stdin\n", "f:3: name is there twice, first at f:2; leave one", ""},
		{"a name that is near", "[OUTPUT]\n  Name stdoutt\n", `f:2: there is no output "stdoutt"; did you mean stdout?`, ""},
		{"another name", "[FILTER]\n  Name zzzzzz\n", `f:2: there is no filter "zzzzzz"; there are grep, modify, record_modifier, parser, nest, rewrite_tag, lua, multiline, throttle`, ""},
		{"a key that is near none", "[OUTPUT]\n  Name null\n  Zzzzzzzz 1\n", `f:3: output null has no property "zzzzzzzz"; take it out`, ""},
		{"a group", "[INPUT]\n  Name dummy\n  [Processors]\n    a b\n  [x]\n    c d\n", "f:3: processors are not here; write them as filters, which see the records of the tags that they match\n" + `f:5: "x" has keys below it, which no property here has; write one value`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, r := read(t, row.text)
			if got := lines(r.Problems()); got != row.problems {
				t.Errorf("problems\n%s\nwant\n%s", got, row.problems)
			}
			if got := lines(r.Notices()); got != row.notices {
				t.Errorf("notices\n%s\nwant\n%s", got, row.notices)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	for _, row := range []struct{ kind, name, more, want string }{
		{"OUTPUT", "http://h:81/a/b?c=d", "", "h 81 /a/b?c=d"},
		{"OUTPUT", "http://h", "", "h 80 /"},
		{"OUTPUT", "HTTP://[::1]:81", "", "::1 81 /"},
		{"OUTPUT", "http://h:81/x", "Port 9\n  Uri /y\n", "h 9 /y"},
		{"OUTPUT", "es://h:1/i/t", "", "h 1 i t"},
		{"OUTPUT", "es://h:1/i", "", "h 1 i _doc"},
		{"INPUT", "http://0.0.0.0:1", "", "0.0.0.0 1"},
		{"OUTPUT", "http://h:x", "", `f:2: "http://h:x" must be http, or http://host:port/path if the output has these properties`},
		{"OUTPUT", "http://u:p@h", "", `f:2: "http://u:p@h" must be http, or http://host:port/path if the output has these properties`},
		{"OUTPUT", "http://h:99999", "", `f:2: port: "99999" must be a whole number from 1 to 65535`},
		{"OUTPUT", "forward://h:1/x", "", `f:2: output forward has no path; take "x" out`},
		{"OUTPUT", "null://h", "", `f:2: "null://h" must be null, or null://host:port/path if the output has these properties`},
	} {
		v, r := read(t, "["+row.kind+"]\n  Name "+row.name+"\n  "+row.more)
		got := lines(r.Problems())
		if got == "" {
			host := "host"
			if v.Plugin.Kind == fluentconf.Input {
				host = "listen"
			}
			got = fmt.Sprint(v.Text(host), " ", v.Int("port"))
			for _, name := range v.Plugin.Address {
				got += " " + v.Text(name)
			}
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestService(t *testing.T) {
	c, r := load(t, "[SERVICE]\n  Flush 0.5\n  Grace -1\n  Nope 1\n  Flsh 2\n  Name x\n  storage.path /x\n  Parsers_File a\n  HTTP_Port 1\n  HC_Period x\n[INPUT]\n  Name dummy\n[SERVICE]\n  Flush 2\n  Parsers_File b\n  Plugins_File p\n  Streams_File s\n")
	v := ReadService(c.Sections, r)
	got := fmt.Sprint(v.Span("flush"), v.Int("grace"), v.List("parsers_file"), v.Int("http_port"), v.Int("scheduler.base"), v.Int("scheduler.cap"), v.Flag("http_server"))
	if got != "2s -1 [a b] 1 5 2000 false" {
		t.Error(got)
	}
	if got := lines(r.Problems()); got != "f:10: hc_period: \"x\" must be a whole number from 1 to 1000000\nf:17: streams_file is not here: there is no stream processor; send the records to one by output kafka" {
		t.Error(got)
	}
	if got := lines(r.Notices()); got != `f:4: "nope" is unknown and has no effect
f:5: "flsh" is unknown and has no effect; did you mean flush?
f:6: "name" is unknown and has no effect
f:16: plugins_file has no effect here: no plugins are loaded from files; a section that needs one is refused` {
		t.Error(got)
	}
	for text, want := range map[string]string{
		"Flush 0":                              `f:2: flush: "0" must be from 0.001 to 1e+06 seconds`,
		"scheduler.base 10\n  scheduler.cap 9": "f:3: scheduler.cap is 9 and scheduler.base is 10; the longest wait cannot be shorter than the shortest one",
		"scheduler.base 3000":                  "f:1: scheduler.cap is 2000 and scheduler.base is 3000; the longest wait cannot be shorter than the shortest one",
		"scheduler.base 0":                     `f:2: scheduler.base: "0" must be a whole number from 1 to 1000000`,
		"scheduler.base 5\n  scheduler.cap 5":  "",
	} {
		c, r := load(t, "[SERVICE]\n  "+text+"\n")
		ReadService(c.Sections, r)
		if got := lines(r.Problems()); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	r = &fluentconf.Report{}
	if v := ReadService(nil, r); v.Span("flush") != time.Second || r.Err() != nil {
		t.Error(v.Span("flush"), r.Err())
	}
}

// Both examples of the seed are read without a fault and without a notice.
func TestTheExamplesOfTheSeed(t *testing.T) {
	for _, name := range []string{"service", "outputs"} {
		r := &fluentconf.Report{}
		c := fluentconf.Load("../fluentconf/testdata/"+name+".conf", nil, fluentconf.System(), r)
		service := ReadService(c.Sections, r)
		var outputs []string
		for _, s := range c.Sections {
			if s.Kind == fluentconf.Output {
				v := All().Read(s, r)
				outputs = append(outputs, fmt.Sprint(v.Plugin.Name, v.Text("host"), v.Int("port"), v.Retries("retry_limit"), v.Has("match")))
			}
		}
		if err := r.Err(); err != nil {
			t.Error(err)
		}
		switch got := fmt.Sprint(service.Span("flush"), service.Int("scheduler.base"), service.Int("scheduler.cap"), outputs, len(r.Notices())); {
		case name == "service" && got != "5s 3 30 [] 0":
			t.Error(got, r.Notices())
		case name == "outputs" && got != "1s 5 2000 [http192.168.5.68080 {0 true} false es192.168.5.209200 {5 false} false] 0":
			t.Error(got, r.Notices())
		}
	}
}

// FuzzRead reads whatever is written for every plugin: no value makes the reader panic.
func FuzzRead(f *testing.F) {
	f.Add("[INPUT]\n  Name tail\n  Path a,b\n  Tag x\n")
	f.Add("[FILTER]\n  Name modify\n  Add a \"b\\\" c\n  Condition x y z\n")
	f.Add("[OUTPUT]\n  Name http://h:1/x\n  Retry_Limit 5\n  Header a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := &fluentconf.Report{}
		c := fluentconf.Load("f", nil, fluentconf.Source{
			Read:   func(string, int64) ([]byte, string, error) { return []byte(text), "f", nil },
			Lookup: func(string) (string, bool) { return "", false },
		}, r)
		catalog := All()
		ReadService(c.Sections, r)
		for _, s := range c.Sections {
			if s.Kind != fluentconf.Input && s.Kind != fluentconf.Filter && s.Kind != fluentconf.Output {
				continue
			}
			v := catalog.Read(s, r)
			if v == nil && r.Err() == nil {
				t.Error("nothing was read and nothing said")
			}
			if v != nil {
				v.Unread()
			}
		}
	})
}
