package fluentconf

import (
	"fmt"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	for _, row := range []struct{ line, want, problems string }{
		{"-i dummy -o stdout", "input[name=dummy] output[name=stdout]", ""},
		{
			"-i tail -p path=/a=b -p Tag=x -F grep -m * -p regex=log#. -o http://h:1/p -m x.* -p Retry_Limit=5",
			"input[name=tail path=/a=b tag=x] filter[name=grep match=* regex=log .] output[name=http://h:1/p match=x.* retry_limit=5]", "",
		},
		{"-idummy -tx -ostdout -f1", "input[name=dummy tag=x] output[name=stdout] service[flush=1]", ""},
		{"--input=dummy --tag x --output stdout --match=* --flush 5", "input[name=dummy tag=x] output[name=stdout match=*] service[flush=5]", ""},
		{
			"-b /s -dH -L ::1 -P 2021 -l log -s 1 -WY --storage_path=/t",
			"service[storage.path=/s daemon=on http_server=on http_listen=::1 http_port=2021 log_file=log coro_stack_size=1 hot_reload.ensure_thread_safety=off hot_reload=on storage.path=/t]", "",
		},
		{"-v", "service[log_level=debug]", ""},
		{"-vv", "service[log_level=debug log_level=trace]", ""},
		{"-v -q", "service[log_level=debug log_level=off]", ""},
		{"-C calyptia -p api_key=k -e a.so -T x", "custom[name=calyptia api_key=k] plugins[plugins=a.so] stream_processor[stream_processor=x]", ""},
		{"-p a=b", "", "command line: -p belongs behind the plugin that it is for: -i NAME, -F NAME or -o NAME"},
		{"-i dummy -p a", "input[name=dummy]", "command line: -p must be KEY=VALUE"},
		{"-i dummy -p =a", "input[name=dummy]", "command line: -p must be KEY=VALUE"},
		{"-i dummy -m *", "input[name=dummy]", "command line: an input has no match; write -m behind the filter or the output that it is for"},
		{"-i", "", "command line: -i needs a value behind it"},
		{"-k -Dz --nope=1 --dry-run=1", "", "command line: there is no flag -k; -h shows all\ncommand line: there is no flag -z; -h shows all\ncommand line: there is no flag --nope; -h shows all\ncommand line: --dry-run has no value"},
		{"dummy -- -", "", "command line: \"dummy\" is no flag; an input is -i NAME, an output -o NAME, a file -c FILE\ncommand line: \"--\" is no flag; an input is -i NAME, an output -o NAME, a file -c FILE\ncommand line: \"-\" is no flag; an input is -i NAME, an output -o NAME, a file -c FILE"},
	} {
		r := &Report{}
		args := strings.Fields(row.line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "#", " ")
		}
		a := ReadArguments(args, r)
		c := Load("", a.Sections, world{}.source(), r)
		if got := show(c.Sections); got != row.want {
			t.Errorf("%s:\n  %s, want\n  %s", row.line, got, row.want)
		}
		if got := strings.TrimSpace(lines(r.Problems())); got != row.problems {
			t.Errorf("%s:\n%s\nwant\n%s", row.line, got, row.problems)
		}
	}
	r := &Report{}
	a := ReadArguments(strings.Fields("-c a.conf -D -w /tmp -R p.conf -R q.conf -h -J -V"), r)
	a.Sections = nil
	if got := fmt.Sprintf("%+v %v", *a, r.Err()); got != "{File:a.conf Workdir:/tmp Parsers:[p.conf q.conf] Sections:[] DryRun:true Help:true Schema:true Version:true} <nil>" {
		t.Error(got)
	}
}

// What flags say comes behind what the file says, and variables are put in.
func TestFlagsComeBehindTheFile(t *testing.T) {
	r := &Report{}
	a := ReadArguments([]string{"-c", "f", "-f", "${n}", "-o", "null"}, r)
	c := Load(a.File, a.Sections, world{"f": "@SET n=9\n[SERVICE]\n Flush 1\n", "$n": "8"}.source(), r)
	if got := show(c.Sections); got != "service[flush=1] output[name=null] service[flush=9]" || r.Err() != nil {
		t.Errorf("%s, %v", got, r.Err())
	}
}
