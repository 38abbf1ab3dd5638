package local

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// intake keeps what it takes, as JSON.
type intake struct {
	list  []string
	fail  error
	taken chan string // nil = none is told
}

func (*intake) Cursors(context.Context) (map[string][]byte, error) {
	return maps.Clone(map[string][]byte{}), nil
}

func (in *intake) Take(_ context.Context, list ...connect.Records) error {
	if in.fail != nil {
		return in.fail
	}
	for _, l := range list {
		w := record.NewJSONWriter(record.Lines, "date", record.Double, false)
		out, n, err := w.AppendChunk(nil, l.Events)
		if err != nil || n != l.Count {
			return errors.New("the events are broken")
		}
		for line := range strings.Lines(string(out)) {
			in.list = append(in.list, l.Tag+" "+strings.TrimSuffix(line, "\n"))
			if in.taken != nil {
				in.taken <- in.list[len(in.list)-1]
			}
		}
	}
	return nil
}

func TestDummy(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*DummyOptions)
		after  time.Duration
		want   []string
	}{
		{"as it is", func(*DummyOptions) {}, 2500 * time.Millisecond, []string{`{"date":946684801.0,"message":"dummy"}`, `{"date":946684802.0,"message":"dummy"}`}},
		{"at once", func(o *DummyOptions) { o.FlushOnStartup = true }, 1500 * time.Millisecond, []string{`{"date":946684800.0,"message":"dummy"}`, `{"date":946684801.0,"message":"dummy"}`}},
		{"by rate", func(o *DummyOptions) { o.Rate, o.Dummy = 2, `{"a":1}` }, 1200 * time.Millisecond, []string{`{"date":946684800.5,"a":1}`, `{"date":946684801.0,"a":1}`}},
		{"by interval", func(o *DummyOptions) { o.IntervalSec, o.IntervalNsec, o.Rate = 1, 5e8, 9 }, 1600 * time.Millisecond, []string{`{"date":946684801.5,"message":"dummy"}`}},
		{"samples and copies", func(o *DummyOptions) { o.Samples, o.Copies, o.Rate, o.FixedTimestamp = 2, 2, 1000, true }, time.Hour, slices.Repeat([]string{`{"date":946684800.0,"message":"dummy"}`}, 4)},
		{"a time of its own", func(o *DummyOptions) { o.StartTimeSec, o.StartTimeNsec = 100, 5e8 }, 1500 * time.Millisecond, []string{`{"date":101.5,"message":"dummy"}`}},
		{"a fixed time of its own", func(o *DummyOptions) { o.StartTimeSec, o.FixedTimestamp = 100, true }, 1500 * time.Millisecond, []string{`{"date":100.0,"message":"dummy"}`}},
		{"metadata", func(o *DummyOptions) { o.Metadata, o.Samples = `{"m":1}`, 1 }, time.Hour, []string{`{"date":946684801.0,"__internal__":{"log_metadata":{"m":1}},"message":"dummy"}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := DummyOptions{Tag: "t", StartTimeSec: -1, StartTimeNsec: -1, Now: time.Now}
				test.change(&o)
				d, err := NewDummy(o)
				if err != nil {
					t.Fatal(err)
				}
				in := &intake{}
				ctx, cancel := context.WithTimeout(t.Context(), test.after)
				defer cancel()
				if err := d.Run(ctx, in); err != nil {
					t.Fatal(err)
				}
				for i, got := range in.list {
					in.list[i] = strings.TrimPrefix(got, "t ")
				}
				if !slices.Equal(in.list, test.want) {
					t.Fatalf("took %q, want %q", in.list, test.want)
				}
			})
		})
	}
}

func TestAFastDummyKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := NewDummy(DummyOptions{Rate: 100_000, StartTimeSec: -1, StartTimeNsec: -1, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		in := &intake{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := d.Run(ctx, in); err != nil || len(in.list) < 98_000 || len(in.list) > 100_000 {
			t.Fatalf("took %d, %v", len(in.list), err)
		}
	})
}

func TestFaultsOfADummy(t *testing.T) {
	_, err := NewDummy(DummyOptions{Dummy: "[]", Metadata: "x", Rate: -1, IntervalSec: -1, IntervalNsec: -1, Samples: -1, Copies: -1, StartTimeNsec: 1e9})
	if err == nil {
		t.Fatal("they were taken")
	}
	for _, name := range []string{"dummy", "metadata", "rate", "interval_sec", "interval_nsec", "samples", "copies", "start_time_nsec"} {
		if !strings.Contains("\n"+err.Error(), "\n"+name+": ") {
			t.Errorf("%q does not speak of %s", err, name)
		}
	}
}

func TestAnIntakeThatFailsEndsASource(t *testing.T) {
	in := &intake{fail: errors.New("the disk is full")}
	d, err := NewDummy(DummyOptions{FlushOnStartup: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(t.Context(), in); !errors.Is(err, in.fail) {
		t.Fatal(err)
	}
	s, err := NewStdin(StdinOptions{In: strings.NewReader("{}"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), in); !errors.Is(err, in.fail) {
		t.Fatal(err)
	}
}

func at7() time.Time { return time.Unix(7, 0) }

func TestStdinReadsJSON(t *testing.T) {
	in := &intake{}
	s, err := NewStdin(StdinOptions{Tag: "t", Now: at7, In: strings.NewReader(
		"{\"a\":1} {\"b\":\n2}\n[3,{\"c\":4}]\nnonsense {}\n[[5,{}],{\"d\":6}]\n[7]\n{\"e\":8}")})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	want := []string{`t {"date":7.0,"a":1}`, `t {"date":7.0,"b":2}`, `t {"date":3.0,"c":4}`, `t {"date":5.0,"d":6}`, `t {"date":7.0,"e":8}`}
	if !slices.Equal(in.list, want) {
		t.Fatalf("took %q, want %q", in.list, want)
	}
}

func TestStdinTakesWhatHasComeBeforeItWaits(t *testing.T) {
	in := &intake{taken: make(chan string, 9)}
	r, w := io.Pipe()
	s, err := NewStdin(StdinOptions{Tag: "t", Now: at7, In: r})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, in) }()
	for _, text := range []string{`{"a":1}`, `{"a":2}`} {
		if _, err := io.WriteString(w, text+"\n"); err != nil {
			t.Fatal(err)
		}
		if got, want := <-in.taken, `t {"date":7.0,`+text[1:]; got != want {
			t.Fatalf("took %s, want %s", got, want)
		}
	}
	cancel() // while nothing comes
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
}

func TestATextThatIsTooLongIsLeftOut(t *testing.T) {
	in := &intake{}
	long := `{"a":"` + strings.Repeat("x", 3*bufferSizeLeast) + `"}`
	s, err := NewStdin(StdinOptions{Tag: "t", Now: at7, In: strings.NewReader(`{"a":1}` + "\n" + long + "\n" + `{"b":2}` + long)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if want := []string{`t {"date":7.0,"a":1}`, `t {"date":7.0,"b":2}`}; !slices.Equal(in.list, want) {
		t.Fatalf("took %.200q, want %q", in.list, want)
	}
	if _, err := NewStdin(StdinOptions{BufferSize: 1}); err == nil || !strings.HasPrefix(err.Error(), "buffer_size: ") {
		t.Fatal(err)
	}
}

// pairs makes an event of two lines each.
type pairs struct{ held string }

func (p *pairs) Line(dst, line []byte, now time.Time) ([]byte, int, int) {
	if p.held == "" {
		p.held = string(line)
		return dst, 0, 1
	}
	dst = record.AppendText(dst, record.At(now), "log", append([]byte(p.held+"|"), line...))
	p.held = ""
	return dst, 1, 0
}

func (p *pairs) Rest(dst []byte, now time.Time) ([]byte, int) {
	if p.held == "" {
		return dst, 0
	}
	return record.AppendText(dst, record.At(now), "log", []byte(p.held)), 1
}

func TestStdinReadsLines(t *testing.T) {
	in := &intake{}
	s, err := NewStdin(StdinOptions{Tag: "t", Now: at7, In: strings.NewReader("a\nb\r\n\nc"), Lines: func() connect.Lines { return &pairs{} }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if want := []string{`t {"date":7.0,"log":"a|b"}`, `t {"date":7.0,"log":"c"}`}; !slices.Equal(in.list, want) {
		t.Fatalf("took %q, want %q", in.list, want)
	}
}
