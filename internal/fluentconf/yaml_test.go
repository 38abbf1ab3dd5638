package fluentconf

import "testing"

func TestYAML(t *testing.T) {
	run(t, "a/main.yaml", []row{
		{
			name: "the example of the reference",
			text: `
env: { LIM: 5 }
service:
  flush: 1
  scheduler.base: 3
  scheduler.cap: 30
includes: [ more.yaml ]
parsers:
  - { name: j, format: json }
pipeline:
  inputs:  [ { name: dummy, tag: app.log } ]
  filters: [ { name: grep, match: '*', regex: 'message .' } ]
  outputs:
    - name: http
      match: 'app.*'
      retry_limit: ${LIM}
`,
			also: world{"a/more.yaml": "pipeline:\n  outputs:\n    - name: null\n"},
			want: "service[flush=1 scheduler.base=3 scheduler.cap=30] output[name=null] parser[name=j format=json] " +
				"input[name=dummy tag=app.log] filter[name=grep match=* regex=message .] output[name=http match=app.* retry_limit=5]",
		},
		{
			name: "camelCase, other cases, names of variables as they are",
			text: "env:\n  myVar: x\nservice:\n  httpServer: on\n  storage.backlogMemLimit: 5M\n  HTTP_Port: 2020\n  hTTP_x: 1\npipeline:\n  outputs:\n  - Name: es\n    retryLimit: no_limits\n    tls.verify: ${myVar}\n",
			want: "service[http_server=on storage.backlog_mem_limit=5M http_port=2020 http_x=1] output[name=es retry_limit=no_limits tls.verify=x]",
		},
		{
			name: "all values are text as it is written",
			text: "service:\n  a: 010\n  b: 1e3\n  c: yes\n  d: ~\n  e:\n  f: \"x\\ty\"\n  g: |\n    one\n    two\n  h: !!str 5\n  i: &n 6\n  j: 'it''s'\n  k: 2026-01-02\n  l: .inf\n  m: 0x1F\n  n: null\n  o: a\n    b\n",
			want: "service[a=010 b=1e3 c=yes d=~ e= f=x\ty g=one\ntwo h=5 i=6 j=it's k=2026-01-02 l=.inf m=0x1F n=null o=a b]",
		},
		{
			name: "lists are the same key several times, and so are keys that are there twice",
			text: "pipeline:\n  filters:\n    - name: modify\n      add:\n        - a b\n        - c d\n      set: e f\n      set: g h\n      none: []\n",
			want: "filter[name=modify add=a b add=c d set=e f set=g h]",
		},
		{
			name: "maps are inner sections",
			text: `
pipeline:
  inputs:
    - name: dummy
      processors:
        logs:
          - name: record_modifier
            record: [ filtered_by x, powered_by y ]
          - name: grep
      routes:
        logs: { condition: { op: and } }
multiline_parsers:
  - name: m
    rules:
      - { state: start_state, regex: "/a/", next_state: cont }
      - { state: cont, regex: "/b/", nextState: cont }
`,
			want: "input[name=dummy processors[logs[name=record_modifier record=filtered_by x record=powered_by y] logs[name=grep]] routes[logs[condition[op=and]]]] " +
				"multiline_parser[name=m rules[state=start_state regex=/a/ next_state=cont] rules[state=cont regex=/b/ next_state=cont]]",
		},
		{
			name: "sections without a form of their own",
			text: "plugins:\n  - /a.so\n  - /b.so\nupstream_servers:\n  - name: u\n    nodes:\n      - { name: n, host: h }\ncustoms:\n  - name: c\nextensions: { a: b }\nword: x\nnothing:\nmixed: [ a, {b: c} ]\n",
			want: "plugins[plugins=/a.so plugins=/b.so] upstream_servers[name=u nodes[name=n host=h]] custom[name=c] extensions[a=b] word[word=x] mixed[mixed=a] mixed[b=c]",
		},
		{
			name: "plugins as they were once written",
			text: "pipeline:\n  inputs:\n    - tail:\n        path: ./test.log\n    - name: x\n      y: {z: 1}\n    - ${p}:\n        tag: a\n        q: {r: s}\n",
			also: world{"$p": "dummy"},
			want: "input[name=tail path=./test.log] input[name=x y[z=1]] input[name=dummy tag=a q[r=s]]",
		},
		{
			name: "variables: a list of them, and in files",
			text: "env:\n  - name: A\n    value: one\n  - { name: B, uri: file:///run/b, refresh_interval: 60 }\nservice:\n  a: ${A}${B}\n",
			also: world{"/run/b": "two\n", "$A": "x"},
			want: "service[a=onetwo]", notices: "a/main.yaml:4: refresh_interval has no effect: the file is read when the configuration is, so reload after a change",
		},
		{
			name: "variables that are none",
			text: "env:\n  - name: A\n  - value: x\n  - { name: B, value: x, uri: file:///b }\n  - { name: C, uri: file:///no }\n  - { name: D, uri: file:///empty }\n  - { name: E, uri: http://x }\n  - F\n",
			also: world{"/empty": "\n"},
			problems: "a/main.yaml:2: a variable needs a name, and a value or a uri such as file:///run/secrets/token\n" +
				"a/main.yaml:3: a variable needs a name, and a value or a uri such as file:///run/secrets/token\n" +
				"a/main.yaml:4: a variable needs a name, and a value or a uri such as file:///run/secrets/token\n" +
				"a/main.yaml:5: \"/no\" cannot be read: open /no: file does not exist\n" +
				"a/main.yaml:6: \"/empty\" is empty; write the value of the variable into it\n" +
				"a/main.yaml:7: \"http://x\" must begin with file://\n" +
				"a/main.yaml:8: \"env\" must be keys with values: KEY: VALUE\n" +
				"a/main.yaml:8: a variable needs a name, and a value or a uri such as file:///run/secrets/token",
		},
		{
			name: "the service twice, with maps in it",
			text: "service:\n  flush: 1\n  health:\n    check: on\n  telemetry:\n    a: b\nincludes:\n  - more.yaml\n",
			also: world{"a/more.yaml": "service:\n  grace: 1\n"},
			want: "service[flush=1 health[check=on] telemetry[a=b]] service[grace=1]",
			problems: "a/main.yaml:3: service.health must be one value, not keys below it; write health.KEY: VALUE\n" +
				"a/more.yaml:1: service is there twice, first at a/main.yaml:1; put them together",
		},
		{
			name: "what has the wrong form",
			text: "pipeline:\n  inputs:\n    name: dummy\n  outputs:\n    - stdout\n    - name: x\n      a: [[b]]\n      c: *d\n  output:\n    - name: y\nservice: on\nparsers: x\n",
			want: "output[] output[name=x] service[] parser[]",
			problems: "a/main.yaml:2: inputs must be a list; write - before each of its parts\n" +
				"a/main.yaml:5: \"output\" must be keys with values: KEY: VALUE\n" +
				"a/main.yaml:7: \"a\": a list in a list is not read\n" +
				"a/main.yaml:8: \"c\" must be a single value; YAML's alias is not read here\n" +
				"a/main.yaml:9: pipeline.\"output\" is unknown; pipeline has inputs, filters and outputs\n" +
				"a/main.yaml:11: \"service\" must be keys with values: KEY: VALUE\n" +
				"a/main.yaml:12: \"parser\" must be keys with values: KEY: VALUE",
		},
		{
			name: "keys that are no names", text: "service:\n  '': b\n  <<: c\n",
			want: "service[]",
			problems: "a/main.yaml:2: a key is empty\n" +
				"a/main.yaml:3: the key must be a name; YAML's mergekey is not read here",
		},
		{name: "no YAML", text: "a: [b\n", problems: "a/main.yaml:1: is no YAML: sequence end token ']' not found"},
		{name: "a variable with keys", text: "env:\n  a: {b: c}\nx: ${a:-d}\n", want: "x[x=d]", problems: "a/main.yaml:2: \"a\" must be a single value; YAML's mapping is not read here"},
		{name: "no map", text: "- a\n", problems: "a/main.yaml:1: \"the file\" must be keys with values: KEY: VALUE"},
		{name: "nothing", text: "# a\n"},
		{name: "two documents", text: "---\na: b\n---\nc: d\n", problems: "a/main.yaml:4: only one document is read; take the line --- out"},
		{name: "a byte 0", text: "a: \"x\\0\"\n", want: "a[]", problems: "a/main.yaml:1: \"a\" must be text; it has a byte with the value 0"},
		{
			name: "includes are looked for beside the file that names them, then as they are named",
			text: "includes:\n  - x/one.yaml\n  - here.yaml\n  - y*.yaml\n  - no.yaml\n  - z.conf\n",
			also: world{
				"a/x/one.yaml": "includes: [ two.yaml ]\n", "a/x/two.yaml": "two: 1\n", "here.yaml": "here: 1\n",
				"a/y2.yaml": "y: 2\n", "a/y1.yaml": "y: 1\n", "a/z.conf": "[INPUT]\n Name z\n",
			},
			want:     "two[two=1] here[here=1] y[y=1] y[y=2] input[name=z]",
			problems: "a/main.yaml:5: there is no file \"a/no.yaml\"",
		},
		{
			name: "a file twice", text: "includes: [ one.yaml, ./one.yaml, main.yaml ]\n", also: world{"a/one.yaml": "one: 1\n"},
			want: "one[one=1]",
			problems: "a/main.yaml:1: \"a/one.yaml\" is read already, as \"a/one.yaml\"; take one of the two out\n" +
				"a/main.yaml:1: \"a/main.yaml\" is read already, as \"a/main.yaml\"; take one of the two out",
		},
	})
}

func TestKeysOfYAML(t *testing.T) {
	for key, want := range map[string]string{
		"name": "name", "retryLimit": "retry_limit", "Retry_Limit": "retry_limit", "RetryLimit": "retrylimit", "HTTP": "http",
		"storage.memLimit": "storage.mem_limit", "a_B": "a_b", "aZ": "a_z", "zA": "z_a", "éA": "éa", "rateGateX": "rate_gate_x", "9A": "9a",
	} {
		if got := snake(key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
}
