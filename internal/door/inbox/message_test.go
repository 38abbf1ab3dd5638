package inbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

func settings(t *testing.T, text string) *Settings {
	t.Helper()
	s, err := ReadSettings([]byte("{" + text + "}"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The memory of a request is used again: a payload is a copy, and one line.
func TestPayloadsAreCopiesOnOneLine(t *testing.T) {
	s := settings(t, byJSON+`"sort":"sequence"`)
	body := []byte("\n{\"g\":1,\r\n\t\"a\":[1,\n2.0]} ")
	single := Single(nil, s, body)
	clear(body)
	bulk := []byte("{\"messages\":[{\"payload\":{\"g\":1,\r\n\t\"a\":[1,\n2.0]}}]}")
	list, err := ReadBulk(bulk)
	clear(bulk)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	for _, m := range []Message{single, list[0]} {
		if m.Err != nil || string(m.Payload) != `{"g":1,"a":[1,2.0]}` {
			t.Errorf("%q, %v", m.Payload, m.Err)
		}
	}
}

func TestHeadersOfTheReferenceSayWhatAMessageIs(t *testing.T) {
	const now = job.Millis(1_000_000)
	s := settings(t, byJSON+`"sort":"timestamp","message":{"timeToLive":"PT10S"}`)
	for _, c := range []struct {
		headers map[string]string
		is      func(j *job.Job) bool
	}{
		{nil, func(j *job.Job) bool {
			return j.Type == TypeDefault && j.GraceUntil == now+10_000 && j.Rank == int64(now)*1000 && j.Ranked && j.ExpiresAt == 0 && j.Extras == nil
		}},
		{map[string]string{"x-correlate-ttl": "PT1M"}, func(j *job.Job) bool { return j.GraceUntil == now+60_000 }},
		{map[string]string{"X-CORRELATE-TTL": "2s"}, func(j *job.Job) bool { return j.GraceUntil == now+2_000 }},
		{map[string]string{"X-CORRELATE-TTL": "PT0S"}, func(j *job.Job) bool { return j.GraceUntil == 0 }},
		{map[string]string{"X-CORRELATE-Timestamp": "1970-01-01T01:00:02.000003+01:00"}, func(j *job.Job) bool { return j.Rank == 2_000_003 }},
		{map[string]string{"X-CORRELATE-Expiration": "1970-01-01T00:30:00Z"}, func(j *job.Job) bool { return j.ExpiresAt == 1_800_000 }},
		{
			map[string]string{"X-CORRELATE-PayloadType-FQCN": "a.b.C", "X-CORRELATE-PayloadType-Namespace": "x", "X-CORRELATE-PayloadType-Name": "Y"},
			func(j *job.Job) bool { return j.Type == "a.b.C" },
		},
		{map[string]string{"X-CORRELATE-PayloadType-Namespace": "x", "X-CORRELATE-PayloadType-Name": "Y"}, func(j *job.Job) bool { return j.Type == "x.Y" }},
		{map[string]string{"X-CORRELATE-PayloadType-Name": "Y"}, func(j *job.Job) bool { return j.Type == TypeDefault }},
		{map[string]string{"X-CORRELATE-Payload-Encoding": "Jackson"}, func(j *job.Job) bool { return j.Extras.Labels[0].Key == wire.CorrelateEncoding }},
	} {
		headers := map[string][]string{"User-Agent": {"curl"}, "X-Other": {"1"}}
		for name, value := range c.headers {
			headers[name] = []string{value}
		}
		m := Single(headers, s, []byte(`{"g":"g"}`))
		var n engine.NewJob
		m.Fill(t.Context(), &n, "in", s, now)
		if m.Err != nil || !c.is(&n.Job) || n.Job.Door != job.DoorInbox || n.Job.Queue != "in" || n.Job.Group != "g" {
			t.Errorf("%v: %+v, %v", c.headers, n.Job, m.Err)
		}
	}
}

func TestWhereTheGroupOfAMessageStands(t *testing.T) {
	const payload = `{"skip":[{"x":[1]},2],"orderId":"o-7","n":9007199254740993,"yes":true,"no":null,"empty":"","deep":{"ids":["a",{"b":"ü"}]},"a b":"c","big":"` + "%" + `"}`
	text := []byte(strings.Replace(payload, "%", strings.Repeat("x", groupMax+1), 1))
	for _, c := range []struct{ key, group, why string }{
		{`"header":"x-hint"`, "h 1", ""},
		{`"header":"x-none"`, "", "the header X-None is missing"},
		{`"json":".orderId"`, "o-7", ""},
		{`"json":".n"`, "9007199254740993", ""},
		{`"json":".yes"`, "true", ""},
		{`"json":".deep.ids[1].b"`, "ü", ""},
		{`"json":".deep.ids[0]"`, "a", ""},
		{`"json":".\"a b\""`, "c", ""},
		{`"json":".no"`, "", ".no of the payload is null"},
		{`"json":".empty"`, "", ".empty of the payload is empty"},
		{`"json":".deep"`, "", "must be a text, a number or a truth value"},
		{`"json":".none"`, "", ".none of the payload is missing"},
		{`"json":".deep.ids[2]"`, "", "is missing"},
		{`"json":".orderId.x"`, "", "is missing"},
		{`"json":".deep[0]"`, "", "is missing"},
		{`"json":".big"`, "", "is longer than 1024 bytes"},
		{`"jq":".orderId + \"/\" + (.n | tostring)"`, "o-7/9007199254740993", ""},
		{`"jq":".n"`, "9007199254740993", ""},
		{`"jq":".deep"`, "", "must give a text"},
		{`"jq":"empty"`, "", "gives nothing"},
		{`"jq":".no"`, "", "gives null"},
		{`"jq":"1,2"`, "", "more than one value"},
		{`"jq":".orderId.x"`, "", "fails"},
		{`"jq":"def f: f; f"`, "", "fails"},
	} {
		s := settings(t, `"group":{`+c.key+`}`)
		m := Single(map[string][]string{"X-Hint": {"h 1"}, "X-None-": {"x"}}, s, text)
		var n engine.NewJob
		m.Fill(t.Context(), &n, "in", s, 1)
		switch {
		case c.why == "" && (m.Err != nil || n.Job.Group != c.group):
			t.Errorf("%s: group %q, %v; want %q", c.key, n.Job.Group, m.Err, c.group)
		case c.why != "" && (m.Err == nil || !strings.Contains(m.Err.Error(), c.why)):
			t.Errorf("%s: %v, want %s", c.key, m.Err, c.why)
		}
	}
}

func TestTooManyHeadersConcernTheirMessage(t *testing.T) {
	var many, long Message
	for i := range job.LabelsMax + 1 {
		many.put("X-"+strings.Repeat("a", i+1), "1")
	}
	long.put("X-Long", strings.Repeat("x", job.LabelBytesMax))
	for _, m := range []Message{many, long} {
		if m.seal(); m.Err == nil || !strings.Contains(m.Err.Error(), "must not be more than 32, or 4096 bytes") {
			t.Error(m.Err)
		}
	}
	for _, header := range [][2]string{{"X Y", "1"}, {"", "1"}, {"X-Y", "a\nb"}, {"X-Y", "\x00"}} {
		var m Message
		if m.put(header[0], header[1]); m.Err == nil {
			t.Errorf("%q is taken", header)
		}
	}
}

// What the door keeps of settings names no secret, and is not taken for one.
func TestHeadersOfAnEndpointAreMasked(t *testing.T) {
	s := settings(t, byJSON+`"deliver":{"http":{"url":"http://x/","headers":{"Authorization":"Bearer s3cret"}}}`)
	shown := s.masked().Append(nil)
	if strings.Contains(string(shown), "s3cret") || !strings.Contains(string(s.Append(nil)), "s3cret") {
		t.Errorf("%s", shown)
	}
	if masked(s.Append(nil)) != string(shown) {
		t.Error("the audit log shows something else")
	}
	if _, err := ReadSettings(shown); err == nil || !strings.Contains(err.Error(), "is masked where it is shown") {
		t.Error(err)
	}
}

func TestRunsKeepTheirRate(t *testing.T) {
	s := Schedule{InitialDelay: 10, Interval: 6}
	var got []job.Millis
	for _, now := range []job.Millis{0, 9, 10, 11, 16, 17, 22, 40} {
		got = append(got, s.Next(0, now))
	}
	if want := []job.Millis{10, 10, 10, 16, 16, 22, 22, 40}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
