package listen

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// counter only counts, and tells when all has come.
type counter struct {
	left int
	all  chan struct{}
}

func (*counter) Cursors(context.Context) (map[string][]byte, error) { return nil, nil }
func (c *counter) Take(_ context.Context, list ...connect.Records) error {
	for _, l := range list {
		c.left -= l.Count
	}
	if c.left <= 0 {
		close(c.all)
	}
	return nil
}

// benchmark sends the same bytes again and again over one connection.
func benchmark(b *testing.B, records int, block []byte, source func(Address) (connect.Source, error)) {
	c := &counter{all: make(chan struct{})}
	rounds := max(b.N/records, 1)
	c.left = rounds * records
	conn, err := new(net.Dialer).DialContext(b.Context(), "tcp", run(b, c, source))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(150)
	b.ReportAllocs()
	b.ResetTimer()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	for range rounds {
		if _, err := conn.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	<-c.all
	b.ReportMetric(float64(rounds*records)/b.Elapsed().Seconds(), "records/s")
	_ = conn.Close()
}

const perBlock = 1000

func BenchmarkForward(b *testing.B) {
	var entries []byte
	for range perBlock {
		entries = record.AppendText(entries, record.At(time.Unix(7, 0)), "log", []byte(strings.Repeat("x", 130)))
	}
	block := msgp.AppendBytes(msgp.AppendString(msgp.AppendArrayHeader(nil, 3), "app"), entries)
	block = append(block, value(b, `{"chunk":"0123456789"}`)...)
	benchmark(b, perBlock, block, func(a Address) (connect.Source, error) { return NewForward(ForwardOptions{Address: a}) })
}

func BenchmarkTCPOfJSON(b *testing.B) {
	block := []byte(strings.Repeat(`{"log":"`+strings.Repeat("x", 139)+"\"}\n", perBlock))
	benchmark(b, perBlock, block, func(a Address) (connect.Source, error) { return NewTCP(TCPOptions{Address: a}) })
}

func BenchmarkSyslogOverTCP(b *testing.B) {
	block := []byte(strings.Repeat(strings.Repeat("x", 149)+"\n", perBlock))
	benchmark(b, perBlock, block, func(a Address) (connect.Source, error) { return NewSyslog(SyslogOptions{Address: a, Mode: "tcp"}) })
}

func BenchmarkHTTPBody(b *testing.B) {
	block := []byte(strings.Repeat(`{"log":"`+strings.Repeat("x", 139)+"\"}\n", perBlock))
	b.SetBytes(150)
	b.ReportAllocs()
	n := 0
	for range max(b.N/perBlock, 1) {
		c := &collector{tag: "t", now: record.Time{Sec: 7}}
		if err := c.json(block); err != nil {
			b.Fatal(err)
		}
		n += c.list[0].Count
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "records/s")
}
