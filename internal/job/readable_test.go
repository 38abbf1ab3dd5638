package job_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestWhatClientsCannotReadIsFoundWithItsPath(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, c := range []struct{ payload, at, why string }{
		{`1`, "", ""},
		{`"1e400"`, "", ""},
		{`{"1e400":"\\\"","b":[-1e308,1E-999,123456789012345678901234567890]}`, "", ""},
		{nested(job.NestingMax), "", ""},
		{objects(job.NestingMax), "", ""},
		{`[` + nested(job.NestingMax-1) + `,` + nested(job.NestingMax-1) + `]`, "", ""},
		{`"` + nested(200) + `"`, "", ""},
		{`1e400`, "", "too large"},
		{`-1E+309`, "", "too large"},
		{`{"a":[1,{"b\"c":"x","d":[1e308,1e309]}]}`, ".a[1].d[1]", "too large"},
		{`[{"a":{}},[],` + strings.Repeat("9", 310) + `]`, "[2]", "too large"},
		{nested(job.NestingMax + 1), "", "nested deeper"},
		{objects(5000), "", "nested deeper"},
		{`{"a\\\\":1e400}`, `.a\\\\`, "too large"},
		{`{"\\\\\"b":"\\\"","c":` + nested(job.NestingMax+1) + `}`, "", "nested deeper"},
	} {
		at, why := job.Unreadable([]byte(c.payload))
		if at != c.at || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%.60s: %q %q; want %q %q", c.payload, at, why, c.at, c.why)
		}
	}
}

func BenchmarkUnreadable(b *testing.B) {
	payload := []byte(`{"to":"ann@example.com","subject":"Your order","items":[{"sku":"A-1","n":2},{"sku":"B-7","n":1}],"total":129.95}`)
	for _, n := range []int{1, 10, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			v := bytes.Repeat(payload, n)
			b.SetBytes(int64(len(v)))
			for b.Loop() {
				job.Unreadable(v)
			}
		})
	}
}
