package listen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/reprisehq/reprise/internal/connect"
)

// dial connects; what is sent is closed by the function that comes back, and what the other
// side says is read to its end.
func dial(t *testing.T, kind, to string) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), kind, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// ended waits until the other side has closed a connection.
func ended(t *testing.T, c net.Conn) {
	t.Helper()
	if b, err := io.ReadAll(c); len(b) > 0 {
		t.Fatalf("read %q, %v", b, err)
	}
}

func startTCP(t testing.TB, in connect.Intake, change func(*TCPOptions)) string {
	return run(t, in, func(a Address) (connect.Source, error) {
		o := TCPOptions{Address: a, Tag: "t"}
		if change != nil {
			change(&o)
		}
		return NewTCP(o)
	})
}

func TestTCPReadsJSON(t *testing.T) {
	in := newIntake()
	c := dial(t, "tcp", startTCP(t, in, nil))
	write(t, c, `{"a":1}{"a"`)
	in.want(t, `t {"date":7.0,"a":1}`)
	write(t, c, ":2}\nnonsense\n[1]\n[3,{\"b\":1}]\n")
	in.want(t, `t {"date":7.0,"a":2}`, `t {"date":3.0,"b":1}`)
	write(t, c, `{"a":"`+strings.Repeat("x", 100<<10))
	ended(t, c)
}

func TestTCPSplitsText(t *testing.T) {
	in := newIntake()
	at := startTCP(t, in, func(o *TCPOptions) {
		o.Format, o.Separator, o.BufferSize, o.SourceAddressKey = "none", `\r\n--`, 1, "from"
	})
	c := dial(t, "tcp", at)
	from := `,"from":"tcp://` + c.LocalAddr().String() + `"}`
	write(t, c, "one\r\n--\r\n--two\r\n")
	in.want(t, `t {"date":7.0,"log":"one"`+from)
	write(t, c, "--three")
	in.want(t, `t {"date":7.0,"log":"two"`+from)
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	in.want(t, `t {"date":7.0,"log":"three"`+from)
	ended(t, c)

	c = dial(t, "tcp", at)
	write(t, c, strings.Repeat("x", 5000)) // of at most 1 KiB
	ended(t, c)
}

func TestFaultsOfATCPInput(t *testing.T) {
	_, err := NewTCP(TCPOptions{Address: Address{Port: -1}, Format: "xml", ChunkSize: -1, BufferSize: -1, Separator: strings.Repeat("x", 300)})
	wantFaults(t, err, "port", "format", "chunk_size", "buffer_size", "separator")
}

func startSyslog(t testing.TB, in connect.Intake, change func(*SyslogOptions)) string {
	return run(t, in, func(a Address) (connect.Source, error) {
		o := SyslogOptions{Address: a, Tag: "t", Mode: "tcp"}
		change(&o)
		return NewSyslog(o)
	})
}

func TestSyslog(t *testing.T) {
	for _, mode := range []string{"udp", "tcp", "unix_udp", "unix_tcp"} {
		t.Run(mode, func(t *testing.T) {
			in := newIntake()
			path := filepath.Join(t.TempDir(), "log")
			if strings.HasPrefix(mode, "unix") { // one that a killed process has left
				l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
				if err != nil {
					t.Fatal(err)
				}
				l.(*net.UnixListener).SetUnlinkOnClose(false)
				_ = l.Close()
			}
			at := startSyslog(t, in, func(o *SyslogOptions) { o.Mode, o.Path, o.UnixPerm = mode, path, 0o600 })
			kind := map[string]string{"udp": "udp", "tcp": "tcp", "unix_udp": "unixgram", "unix_tcp": "unix"}[mode]
			c := dial(t, kind, at)
			for i := range 3 {
				write(t, c, fmt.Sprintf("<13>message %d\n", i))
				in.want(t, fmt.Sprintf(`t {"date":7.0,"log":"<13>message %d"}`, i))
			}
			if info, err := os.Stat(path); strings.HasPrefix(mode, "unix") && (err != nil || info.Mode().Perm() != 0o600) {
				t.Errorf("%v, %v", info, err)
			}
		})
	}
}

func TestSyslogCountsOctets(t *testing.T) {
	in := newIntake()
	at := startSyslog(t, in, func(o *SyslogOptions) { o.Format, o.BufferMaxSize, o.SourceAddressKey = "octet_counting", 100, "from" })
	c := dial(t, "tcp", at)
	from := `,"from":"tcp://` + c.LocalAddr().String() + `"}`
	write(t, c, "5 a\nb c3 ab\n\n4 last")
	in.want(t, `t {"date":7.0,"log":"a\nb c"`+from, `t {"date":7.0,"log":"ab"`+from, `t {"date":7.0,"log":"last"`+from)
	write(t, c, "101 ")
	ended(t, c)
	for _, text := range []string{"x ", "-1 ", strings.Repeat("1", 200)} {
		c := dial(t, "tcp", at)
		write(t, c, text)
		ended(t, c)
	}
}

func TestFaultsOfASyslogInput(t *testing.T) {
	_, err := NewSyslog(SyslogOptions{Mode: "smoke", Format: "xml", UnixPerm: 0o7777, BufferChunkSize: -1, BufferMaxSize: -1, ReceiveBufferSize: -1})
	wantFaults(t, err, "mode", "format", "unix_perm", "buffer_chunk_size", "buffer_max_size", "receive_buffer_size")
	_, err = NewSyslog(SyslogOptions{})
	wantFaults(t, err, "path")

	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := NewSyslog(SyslogOptions{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), newIntake()); err == nil || !strings.HasPrefix(err.Error(), "path: ") {
		t.Fatal(err)
	}
}

func TestAnIntakeThatFailsClosesTheConnection(t *testing.T) {
	in := newIntake()
	in.fail = errors.New("the disk is full")
	c := dial(t, "tcp", startTCP(t, in, nil))
	write(t, c, `{"a":1}`)
	ended(t, c)
}

// FuzzFrames compares what is read at once with what is read byte by byte, and with a split.
func FuzzFrames(f *testing.F) {
	f.Add("a--b---c--", "--", uint8(20))
	f.Add("3 abc12 ", "", uint8(20))
	f.Fuzz(func(t *testing.T, text, separator string, most uint8) {
		size := int(most) + 1
		read := func(r io.Reader) (list []string, err error) {
			in := bufio.NewReaderSize(r, max(size+len(separator), 16)+4)
			for err == nil && len(list) < 1000 {
				var line []byte
				if separator == "" {
					line, err = counted(in, size)
				} else {
					line, err = separated(in, []byte(separator), size)
				}
				list = append(list, string(line))
			}
			return list, err
		}
		list, err := read(strings.NewReader(text))
		list2, err2 := read(iotest.OneByteReader(strings.NewReader(text)))
		if !slices.Equal(list, list2) || !errors.Is(err2, err) {
			t.Fatalf("%q, %v at once and %q, %v by bytes", list, err, list2, err2)
		}
		if separator != "" && errors.Is(err, io.EOF) && !slices.Equal(list, strings.Split(text, separator)) && len(list) < 1000 {
			t.Fatalf("%q of %q", list, text)
		}
	})
}

func TestAWebPageSendsNothingToAnInputOfStreams(t *testing.T) {
	in := newIntake()
	for name, at := range map[string]string{
		"tcp":          startTCP(t, in, nil),
		"tcp of lines": startTCP(t, in, func(o *TCPOptions) { o.Format = "none" }),
		"syslog":       startSyslog(t, in, func(*SyslogOptions) {}),
		"forward":      startForward(t, in, nil),
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at, strings.NewReader("\n{\"a\":1}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s answered %s", name, resp.Status)
		}
		if got := in.take(); len(got) > 0 {
			t.Errorf("%s took %q", name, got)
		}
	}
}

func TestLinesThatSpeakOfRequestsAreTaken(t *testing.T) {
	in := newIntake()
	c := dial(t, "tcp", startTCP(t, in, func(o *TCPOptions) { o.Format = "none" }))
	write(t, c, "GET / HTTP/1.1\n")
	in.want(t, `t {"date":7.0,"log":"GET / HTTP/1.1"}`)
}
