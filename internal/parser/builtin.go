package parser

// The times of the known formats.
const (
	clfTime = "%d/%b/%Y:%H:%M:%S %z"
	isoTime = "%Y-%m-%dT%H:%M:%S.%L"
	bsdTime = "%b %d %H:%M:%S"
)

// request is the line of a request between quotes, and what was answered.
const request = `"(?<method>\S+)(?: +(?<path>[^"]*?)(?: +\S*)?)?" (?<code>\S+) (?<size>\S+)`

// agent is what the combined log format has behind that.
const agent = `(?: "(?<referer>[^"]*)" "(?<agent>[^"]*)")`

// BuiltIn are the parsers that configurations name without defining them. A
// configuration may define one of the same name for itself.
func BuiltIn() []Options {
	combined := `^(?<host>\S+) \S+ (?<user>\S+) \[(?<time>[^\]]*)\] ` + request + agent + `?`
	return []Options{
		{Name: "json", Format: "json", TimeFormat: clfTime},
		{Name: "logfmt", Format: "logfmt"},
		{Name: "apache", Format: "regex", TimeFormat: clfTime, Regex: combined},
		{Name: "apache2", Format: "regex", TimeFormat: clfTime, Regex: combined},
		{Name: "apache_error", Format: "regex", Regex: `^\[[^ ]* (?<time>[^\]]*)\] \[(?<level>[^\]]*)\](?: \[pid (?<pid>[^\]]*)\])?(?: \[client (?<client>[^\]]*)\])? (?<message>.*)$`},
		{Name: "nginx", Format: "regex", TimeFormat: clfTime, Regex: `^(?<remote>\S+) (?<host>\S+) (?<user>\S+) \[(?<time>[^\]]*)\] ` + request + agent + `?`},
		{Name: "k8s-nginx-ingress", Format: "regex", TimeFormat: clfTime, Regex: `^(?<host>\S+)(?: - \[(?<real_ip>[^ \]]*)\])? - (?<user>.*?) \[(?<time>[^\]]*)\] ` + request + agent +
			` (?<request_length>\S+) (?<request_time>\S+) \[(?<proxy_upstream_name>[^\]]*)\](?: \[(?<proxy_alternative_upstream_name>[^\]]*)\])?` +
			` (?<upstream_addr>\S+(?:, \S+)*) (?<upstream_response_length>\S+(?:, \S+)*) (?<upstream_response_time>\S+(?:, \S+)*) (?<upstream_status>\S+(?:, \S+)*) (?<reg_id>\S+)$`},
		{Name: "docker", Format: "json", TimeFormat: isoTime, TimeKeep: true},
		{Name: "docker-daemon", Format: "regex", TimeFormat: isoTime, TimeKeep: true, Regex: `time="(?<time>[^"]*)" level=(?<level>\S+) msg="(?<msg>(?:[^"\\]|\\.)*)"`},
		{Name: "cri", Format: "regex", TimeFormat: isoTime + "%z", TimeKeep: true, Regex: `^(?<time>\S+) (?<stream>stdout|stderr) (?<logtag>\S*) (?<message>.*)$`},
		{
			Name: "syslog-rfc5424", Format: "regex", TimeFormat: isoTime + "%z", TimeKeep: true, TimeLenient: true,
			Regex: `^<(?<pri>[0-9]{1,5})>1 (?<time>\S+) (?<host>\S+) (?<ident>\S+) (?<pid>\S+) (?<msgid>\S+) (?<extradata>-|(?:\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\])+)(?: (?<message>(?s:.+)))?$`,
		},
		{
			Name: "syslog-rfc3164-local", Format: "regex", TimeFormat: bsdTime, TimeKeep: true,
			Regex: `^<(?<pri>[0-9]+)>(?<time>[A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9:]{8}) (?<ident>[^ :\[]+)(?:\[(?<pid>[0-9]+)\])?:? *(?<message>(?s:.*))$`,
		},
		{
			Name: "syslog-rfc3164", Format: "regex", TimeFormat: bsdTime, TimeKeep: true,
			Regex: `^<(?<pri>[0-9]{1,5})>(?<time>[A-Z][a-z]{2} {1,2}[0-9]{1,2} [0-9:]{8}) (?<host>\S+) (?<ident>[^ :\[]+)(?:\[(?<pid>[0-9]+)\])?:? *(?<message>(?s:.*))$`,
		},
		{
			Name: "mongodb", Format: "regex", TimeFormat: isoTime, TimeKeep: true,
			Regex: `^(?<time>\S+)\s+(?<severity>\w)\s+(?<component>\S+)\s+\[(?<context>[^\]]+)\]\s+(?<message>.*?) *(?:(?<ms>[0-9]+)ms)?$`,
		},
		{
			Name: "envoy", Format: "regex", TimeFormat: isoTime + "%z", TimeKeep: true,
			Regex: `^\[(?<start_time>[^\]]*)\] ` + envoyRequest + ` (?<code>\S+) (?<response_flags>\S+) ` + envoyTraffic + ` ` + envoyHeaders, TimeKey: "start_time",
		},
		{
			Name: "istio-envoy-proxy", Format: "regex", TimeFormat: isoTime + "%z", TimeKeep: true, TimeKey: "start_time",
			Regex: `^\[(?<start_time>[^\]]*)\] ` + envoyRequest + ` (?<response_code>\S+) (?<response_flags>\S+) (?<response_code_details>\S+) (?<connection_termination_details>\S+)` +
				` "?(?<upstream_transport_failure_reason>[^"]*?)"? ` + envoyTraffic + ` ` + envoyHeaders +
				` (?<upstream_cluster>\S+) (?<upstream_local_address>\S+) (?<downstream_local_address>\S+) (?<downstream_remote_address>\S+) (?<requested_server_name>\S+)(?: +(?<route_name>\S+))?`,
		},
		{
			Name: "kube-custom", Format: "regex",
			Regex: `(?<tag>[^.]+)?\.?(?<pod_name>[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*)_(?<namespace_name>[^_]+)_(?<container_name>.+)-(?<docker_id>[a-z0-9]{64})\.log$`,
		},
	}
}

// Pieces of Envoy's default format.
const (
	envoyRequest = `"(?<method>\S+)(?: +(?<path>[^"]*?)(?: +(?<protocol>[^" ]+))?)?"`
	envoyTraffic = `(?<bytes_received>\S+) (?<bytes_sent>\S+) (?<duration>\S+) (?<x_envoy_upstream_service_time>\S+)`
	envoyHeaders = `"(?<x_forwarded_for>[^"]*)" "(?<user_agent>[^"]*)" "(?<request_id>[^"]*)" "(?<authority>[^"]*)" "(?<upstream_host>[^"]*)"`
)

// criParser takes a line of CRI-O and containerd apart, with the names that the
// built-in multiline parser gives.
var criParser = Options{
	Name: "cri", Format: "regex", TimeFormat: isoTime + "%z", TimeKeep: true,
	Regex: `^(?<time>\S+) (?<stream>stdout|stderr) (?<_p>\S+) (?<log>.*)$`,
}

// BuiltInMultiline are the multiline parsers that configurations name without
// defining them.
func BuiltInMultiline() []MultilineOptions {
	return []MultilineOptions{
		{
			Name: "docker", Type: "endswith", Match: "\n", KeyContent: "log", KeyGroup: "stream",
			Parser: &Options{Name: "docker", Format: "json", TimeFormat: isoTime, TimeKeep: true},
		},
		{Name: "cri", Type: "equal", Match: "F", KeyPattern: "_p", KeyContent: "log", KeyGroup: "stream", Parser: &criParser},
		{Name: "java", Rules: []Rule{
			{"start_state", `(?:Exception|Error|Throwable|stack trace)(?:[:\r]|$)`, "trace"},
			{"trace", `^[\t ]+(?:eval )?at `, "trace"},
			{"trace", `^[\t ]*(?:Caused by|Suppressed):`, "trace"},
			{"trace", `^[\t ]*\.\.\. \d+ (?:more|common frames omitted)`, "trace"},
			{"trace", `^[\t ]*--- End of `, "trace"},
			{"trace", `^[\t ]*nested exception is:`, "nested"},
			{"nested", `(?:Exception|Error|Throwable)(?:[:\r]|$)`, "trace"},
		}},
		{Name: "python", Rules: []Rule{
			{"start_state", `^Traceback \(most recent call last\):`, "frame"},
			{"frame", `^[\t ]+File "`, "code"},
			{"code, frame", `^[\t ]+\S`, "frame"},
			{"code, frame", `^[A-Za-z_][\w.]*(?::|$)`, "start_state"},
		}},
		{Name: "go", Rules: []Rule{
			{"start_state", `\bpanic: `, "panic"},
			{"start_state", `http: panic serving`, "goroutine"},
			{"panic", `^\s+panic: `, "panic"},
			{"panic", `^\[signal `, "panic"},
			{"panic", `^$`, "goroutine"},
			{"panic, goroutine", `^goroutine \d+ \[[^\]]+\]:$`, "call"},
			{"call", `^(?:created by |\S+\()`, "place"},
			{"call", `^$`, "goroutine"},
			{"place", `^\s`, "call"},
		}},
		{Name: "ruby", Rules: []Rule{
			{"start_state", `^.+:\d+:in\s+`, "from"},
			{"from", `^\s+from\s+.*:\d+:in\s+`, "from"},
		}},
	}
}
