package fluentconf

import (
	"os"
	"strings"
	"testing"
)

// The two examples of the seed have no indentation.
func TestTheExamplesOfTheSeed(t *testing.T) {
	for file, want := range map[string]string{
		"testdata/service.conf": "service[flush=5 daemon=off log_level=debug scheduler.base=3 scheduler.cap=30]",
		"testdata/outputs.conf": "output[name=http host=192.168.5.6 port=8080 retry_limit=False] " +
			"output[name=es host=192.168.5.20 port=9200 logstash_format=On retry_limit=5]",
	} {
		r := &Report{}
		c := Load(file, nil, System(), r)
		if got := show(c.Sections); got != want {
			t.Errorf("%s: %s", file, got)
		}
		if err := r.Err(); err != nil || len(r.Notices()) > 0 {
			t.Errorf("%s: %v, %v", file, err, r.Notices())
		}
		last := c.Sections[0].Entries[1]
		if text, err := os.ReadFile(file); err != nil || last.At.String() != file+":3" || !strings.Contains(strings.Split(string(text), "\n")[2], last.Value) {
			t.Errorf("%s: %s stands at %s", file, last.Key, last.At)
		}
	}
}

func TestClassic(t *testing.T) {
	run(t, "a/main.conf", []row{
		{
			name: "keys in any case, values trimmed, repeated keys in order, comments, blank lines, CRLF",
			text: "\ufeff# c\r\n\r\n[Input]\r\n    NAME   tail  \r\n    # Path no\r\n      # deeper\r\n    path /a b # kept\r\n\t\r\n    Path /c\r\n",
			want: "input[name=tail path=/a b # kept path=/c]",
		},
		{name: "no newline at the end", text: "[INPUT]\n  Name dummy", want: "input[name=dummy]"},
		{name: "nothing", text: "", want: ""},
		{
			name: "plurals and spaces in the name of a section, other names are kept",
			text: "[INPUTS]\n Name a\n[ filter ] # c\n Name b\n[Outputs]\n Name c\n[UPSTREAM]\n name d\n[customs]\n name e\n",
			want: "input[name=a] filter[name=b] output[name=c] upstream[name=d] custom[name=e]",
		},
		{
			name: "a tab after spaces belongs to the value, one at the end of the key to neither",
			text: "[INPUT]\n\tName  \tdummy\n\tTag\t x\n",
			want: "input[name=dummy tag=x]",
		},
		{
			name:     "a value that is not there (issue 5880 of the original)",
			text:     "[FILTER]\n    Name modify\n    ADD foo bar\n    ADD\n    Match *\n    Set \n[OUTPUT]\n    Name stdout\n    Format",
			want:     "filter[name=modify add=foo bar match=*] output[name=stdout]",
			problems: "a/main.conf:4: \"ADD\" has no value; write one behind it, or take the line out\na/main.conf:6: \"Set\" has no value; write one behind it, or take the line out\na/main.conf:9: \"Format\" has no value; write one behind it, or take the line out",
		},
		{
			name:     "a tab for a space",
			text:     "[INPUT]\n\tName\tdummy\n\tTag\tx y\n",
			want:     "input[]",
			problems: "a/main.conf:2: \"Name\\tdummy\": a tab does not end a key; write a space\na/main.conf:3: \"Tag\\tx\": a tab does not end a key; write a space",
		},
		{
			name: "the first entry of a file says how far its entries are indented",
			text: "[INPUT]\n    Name dummy\n\n[OUTPUT]\n      Name stdout\n      Match *\n[OUTPUT]\n    Name file\n\tMatch x\n",
			want: "input[name=dummy] output[name=stdout match=*] output[name=file match=x]",
			problems: "a/main.conf:5: is indented by 6 spaces, the first entry of the file by 4 spaces; indent all entries alike\n" +
				"a/main.conf:9: is indented by 1 tab, the first entry of the file by 4 spaces; indent all entries alike",
		},
		{
			name:     "after entries that are not indented, one that is",
			text:     "[INPUT]\nName dummy\n Tag x\n",
			want:     "input[name=dummy tag=x]",
			problems: "a/main.conf:3: is indented by 1 space, the first entry of the file by nothing; indent all entries alike",
		},
		{
			name:     "after entries that are indented, one that is not",
			text:     "[INPUT]\n    Name dummy\nTag x\n    Rate 1\n \t Copies 2",
			want:     "input[name=dummy tag=x rate=1 copies=2]",
			problems: "a/main.conf:3: is indented by nothing, the first entry of the file by 4 spaces; indent all entries alike\na/main.conf:5: is indented by 2 spaces and 1 tab, the first entry of the file by 4 spaces; indent all entries alike",
		},
		{
			name: "a group, and twice the indentation without one",
			text: "[INPUT]\n  Name dummy\n    Rate 2\n  [Processors]\n    Name x\n    Rule y\n  Tag z\n  [more]\n[OUTPUT]\n    Name a\n",
			want: "input[name=dummy rate=2 tag=z processors[name=x rule=y] more[]] output[name=a]",
		},
		{
			name:     "a group without a name or an end",
			text:     "[INPUT]\n  Name dummy\n  [x\n  []\n    a b\n",
			want:     "input[name=dummy]",
			problems: "a/main.conf:3: the group needs a name in brackets, such as [PROCESSORS]\na/main.conf:4: the group needs a name in brackets, such as [PROCESSORS]",
		},
		{
			name:     "headings that are none",
			text:     "[INPUT\n Name a\n[]\n Name b\n[OUTPUT]Name c\n Name d\n",
			want:     "output[name=d]",
			problems: "a/main.conf:1: the name of the section has no end; close it with ]\na/main.conf:3: the section has no name; write for example [INPUT]",
			notices:  "a/main.conf:5: \"Name c\" after the name of the section is not read; entries begin on the next line",
		},
		{
			name:     "what stands below a heading that is none belongs to nothing",
			text:     "[OUTPUT]\n Name a\n[]\n Name b\n[INPUT\n Name c\n[FILTERS]\n Name d\n[FOXES]\n Name e\n",
			want:     "output[name=a] filter[name=d] foxes[name=e]",
			problems: "a/main.conf:3: the section has no name; write for example [INPUT]\na/main.conf:5: the name of the section has no end; close it with ]",
		},
		{
			name: "each run of entries that are indented wrongly is told",
			text: "[INPUT]\n  A b\n   C d\n   E f\n  G h\n   I j\n",
			want: "input[a=b c=d e=f g=h i=j]",
			problems: "a/main.conf:3: is indented by 3 spaces, the first entry of the file by 2 spaces; indent all entries alike\n" +
				"a/main.conf:6: is indented by 3 spaces, the first entry of the file by 2 spaces; indent all entries alike",
		},
		{
			name:     "a long word is told in short",
			text:     "[INPUT]\n  " + strings.Repeat("x", 64) + "\n  " + strings.Repeat("y", 65) + "\n",
			want:     "input[]",
			problems: "a/main.conf:2: \"" + strings.Repeat("x", 64) + "\" has no value; write one behind it, or take the line out\na/main.conf:3: \"" + strings.Repeat("y", 64) + "...\" has no value; write one behind it, or take the line out",
		},
		{name: "a byte 0 at the beginning", text: "\x00", problems: "a/main.conf:1: is not text: there is a byte with the value 0"},
		{
			name:     "entries before the first section",
			text:     "Name dummy\nTag x\n[INPUT]\nName dummy\n",
			want:     "input[name=dummy]",
			problems: "a/main.conf:1: stands before the first section; write a line such as [SERVICE] or [INPUT] above it",
		},
		{
			name: "parsers in the main file",
			text: "[PARSER]\n Name x\n[MULTILINE_PARSER]\n Name y\n",
			want: "parser[name=x] multiline_parser[name=y]",
			problems: "a/main.conf:1: [PARSER] does not belong into the main file; put it into a file of its own and name that one by Parsers_File in [SERVICE]\n" +
				"a/main.conf:3: [MULTILINE_PARSER] does not belong into the main file; put it into a file of its own and name that one by Parsers_File in [SERVICE]",
		},
		{
			name:     "no text",
			text:     "[INPUT]\n Name \x00\n",
			problems: "a/main.conf:2: is not text: there is a byte with the value 0",
		},
		{
			name: "@SET holds in all of the configuration, the last one counts, and it stands before the environment",
			text: "[INPUT]\n  Name ${n}\n@SET n=one\n@set  n = two=3 \n  Tag ${HOME}\n",
			also: world{"$n": "three", "$HOME": "/root"},
			want: "input[name=two=3 tag=/root]",
		},
		{
			name: "directives that are none",
			text: "@SET x\n@SET =x\n@INCLUDE\n@FOO x\n[INPUT]\n  Name a\n  @SET a=b\n  @include x.conf\n",
			want: "input[name=a]",
			problems: "a/main.conf:1: @SET needs a name and a value: @SET name=value\n" +
				"a/main.conf:2: @SET needs a name and a value: @SET name=value\n" +
				"a/main.conf:3: @INCLUDE needs the path of a file: @INCLUDE inputs.conf\n" +
				"a/main.conf:4: \"@FOO\" is unknown; lines with @ are @SET name=value and @INCLUDE path\n" +
				"a/main.conf:7: @SET must stand at the beginning of its line\n" +
				"a/main.conf:8: @include must stand at the beginning of its line",
		},
	})
}

func TestVariables(t *testing.T) {
	run(t, "main.conf", []row{
		{
			name: "in values, several, with what is around them",
			text: "[INPUT]\n  Name ${a}\n  Tag x.${a}-${b}.y\n",
			also: world{"$a": "dummy", "$b": "${a}"},
			want: "input[name=dummy tag=x.dummy-${a}.y]",
		},
		{
			name: "a default is for what is not set or is empty",
			text: "[INPUT]\n  Name ${no:-dummy}\n  Tag ${empty:-a b}\n  Alias ${a:-z}\n  Path ${no:-}\n",
			also: world{"$a": "x", "$empty": ""},
			want: "input[name=dummy tag=a b alias=x path=]",
		},
		{
			name:    "not set",
			text:    "[OUTPUT]\n  Name a\n  Retry_Limit ${no}\n  Match x${no}${nor}\n",
			want:    "output[name=a retry_limit= match=x]",
			notices: "main.conf:3: the variable \"no\" is not set, which is the same as an empty one\nmain.conf:4: the variable \"no\" is not set, which is the same as an empty one\nmain.conf:4: the variable \"nor\" is not set, which is the same as an empty one",
		},
		{
			name: "what has no name or no end stays, and there is no nesting",
			text: "[INPUT]\n  Name ${}\n  Tag ${a\n  Alias $a\n  Path ${x:-${a}}\n",
			also: world{"$a": "b"},
			want: "input[name=${} tag=${a alias=$a path=${a}]",
		},
	})
	c := Load("a", nil, world{"a": "[OUTPUT]\n  http_passwd ${SECRET}\n", "$SECRET": "hunter2"}.source(), &Report{})
	if e := c.Sections[0].Entries[0]; e.Written != "${SECRET}" || e.Value != "hunter2" {
		t.Errorf("%+v", e)
	}
}

func TestIncludes(t *testing.T) {
	const one = "[INPUT]\n  Name a\n"
	run(t, "a/main.conf", []row{
		{
			name: "as named, and from the folder of the main file; the section goes on after it",
			text: "[SERVICE]\n  Flush 1\n@INCLUDE a/x/one.conf\n@include y.conf  \n  Grace 2\n",
			also: world{"a/x/one.conf": one + "@INCLUDE x/two.conf\n", "a/x/two.conf": "[FILTER]\n\tName b\n", "a/y.conf": "[OUTPUT]\nName c\n", "y.conf": ""},
			want: "service[flush=1 grace=2] input[name=a] filter[name=b]",
		},
		{
			name: "a pattern, in the order of names",
			text: "@INCLUDE in/*.conf\n@INCLUDE out*\n@INCLUDE /abs/*\n",
			also: world{"/abs/1.conf": "[OUTPUT]\n Name d", "a/in/2.conf": "[FILTER]\n Name b", "a/in/1.conf": one, "a/in/3.txt": "x", "a/out.conf": "[OUTPUT]\n Name c"},
			want: "input[name=a] filter[name=b] output[name=c] output[name=d]",
		},
		{
			name: "files that are not there", also: world{"a/abs.conf": "x"},
			text: "@INCLUDE no.conf\n@INCLUDE no/*.conf\n@INCLUDE /abs.conf\n@INCLUDE ${D}/x.conf\n@INCLUDE [*\n",
			problems: "a/main.conf:1: there is no file \"no.conf\"\n" +
				"a/main.conf:2: no file has a name like \"a/no/*.conf\"; put one there or take the line out\n" +
				"a/main.conf:3: there is no file \"/abs.conf\"\n" +
				"a/main.conf:4: there is no file \"${D}/x.conf\"; variables are not put into the paths of files, write the path out\n" +
				"a/main.conf:5: \"a/[*\" is no pattern of file names: syntax error in pattern",
		},
		{
			name: "a file twice, itself, and by another name",
			text: "@INCLUDE one.conf\n@INCLUDE one.conf\n@INCLUDE main.conf\n@INCLUDE link.conf\n@INCLUDE two.conf\n",
			also: world{"a/one.conf": one, "a/link.conf": "->a/one.conf", "a/two.conf": "@INCLUDE main.conf\n"},
			want: "input[name=a]",
			problems: "a/main.conf:2: \"a/one.conf\" is read already, as \"a/one.conf\"; take one of the two out\n" +
				"a/main.conf:3: \"a/main.conf\" is read already, as \"a/main.conf\"; take one of the two out\n" +
				"a/main.conf:4: \"a/link.conf\" is read already, as \"a/one.conf\"; take one of the two out\n" +
				"a/two.conf:1: \"a/main.conf\" is read already, as \"a/main.conf\"; take one of the two out",
		},
		{
			name: "YAML",
			text: "@INCLUDE p.yaml\n@INCLUDE q.YML\n",
			also: world{"a/p.yaml": "pipeline:\n  inputs:\n    - name: dummy\n", "a/q.YML": "pipeline: {outputs: [name: x]}\n"},
			want: "input[name=dummy] output[name=x]",
		},
	})
}

// What is wrong in all files is told at once, file by file.
func TestAllProblemsAreToldAtOnce(t *testing.T) {
	r := &Report{}
	Load("a", nil, world{"a": "Name x\n@INCLUDE b\n[INPUT]\nTag\n", "b": "[PARSER]\n Name\n@X\n"}.source(), r)
	const want = "a:1: stands before the first section; write a line such as [SERVICE] or [INPUT] above it\n" +
		"a:4: \"Tag\" has no value; write one behind it, or take the line out\n" +
		"b:1: [PARSER] does not belong into the main file; put it into a file of its own and name that one by Parsers_File in [SERVICE]\n" +
		"b:2: \"Name\" has no value; write one behind it, or take the line out\n" +
		"b:3: \"@X\" is unknown; lines with @ are @SET name=value and @INCLUDE path"
	if err := r.Err(); err == nil || err.Error() != want {
		t.Errorf("%v, want\n%s", err, want)
	}
	r = &Report{}
	Load("a", nil, world{"a": "[INPUT]\n" + strings.Repeat("Tag\n", 1000)}.source(), r)
	if n := strings.Count(r.Err().Error(), "\n"); n != remarksMax || !strings.HasSuffix(r.Err().Error(), "\nand 800 more") {
		t.Errorf("%d lines of 1000 problems", n)
	}
	r = &Report{}
	for i := range 2 * (remarksMax + 1) {
		r.Notice(Place{"a", i / 2}, "x")
	}
	if got := r.Notices(); len(got) != remarksMax || got[1].At.Line != 1 {
		t.Errorf("%d notices, the second one at %s", len(got), got[1].At)
	}
	r = &Report{}
	for range remarksMax + 1 {
		r.Problem(CommandLine, "x")
	}
	if got := r.Err().Error(); !strings.HasSuffix(got, "x\nand 1 more") {
		t.Error(got)
	}
	if (&Report{}).Err() != nil {
		t.Error("no problems are an error")
	}
}

func TestParsersFile(t *testing.T) {
	w := world{
		"a/main.conf":    "@SET f=json\n[SERVICE]\n  Parsers_File parsers.conf\n",
		"a/parsers.conf": "[PARSER]\n  Name j\n  Format ${f}\n[INPUT]\n  Name x\n[MULTILINE_PARSER]\n  Name m\n  rule \"start_state\" \"/x/\" \"cont\"\n  rule \"cont\" \"/y/\" \"cont\"\n",
		"b.yaml":         "parsers:\n  - name: y\n    format: regex\n    regex: '^(?<a>[^ ]*)$'\n",
	}
	r := &Report{}
	c := Load("a/main.conf", nil, w.source(), r)
	named, _ := c.Sections[0].Find("parsers_file")
	list := c.Parsers(named.Value, named.At, w.source(), r)
	list = append(list, c.Parsers("b.yaml", CommandLine, w.source(), r)...)
	const want = `parser[name=j format=json] multiline_parser[name=m rule="start_state" "/x/" "cont" rule="cont" "/y/" "cont"] parser[name=y format=regex regex=^(?<a>[^ ]*)$]`
	if got := show(list); got != want || r.Err() != nil {
		t.Errorf("%s, %v", got, r.Err())
	}
	if got := lines(r.Notices()); got != "a/parsers.conf:4: [INPUT] is not read here: a file of parsers has only [PARSER] and [MULTILINE_PARSER]\n" {
		t.Error(got)
	}
	if len(c.Sections) != 1 || len(c.Files) != 3 {
		t.Errorf("%d sections, files %v", len(c.Sections), c.Files)
	}
	c.Parsers("no.conf", named.At, w.source(), r)
	if got := r.Err(); got == nil || got.Error() != `a/main.conf:3: there is no file "no.conf"; take this out if all parsers that you use are built in, as those of docs/pipeline.md are` {
		t.Error(got)
	}
}
