package listen

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

func startForward(t testing.TB, in connect.Intake, change func(*ForwardOptions)) string {
	return run(t, in, func(a Address) (connect.Source, error) {
		o := ForwardOptions{Address: a}
		if change != nil {
			change(&o)
		}
		return NewForward(o)
	})
}

func value(t testing.TB, json string) []byte {
	t.Helper()
	b, err := record.AppendFromJSON(nil, []byte(json))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// events are two of them, one in the old form.
func events(t testing.TB) []byte {
	b := record.AppendEvent(nil, record.Time{Sec: 3, Nsec: 5e8}, nil, value(t, `{"a":1}`))
	return append(b, value(t, `[4,{"a":2}]`)...)
}

// packed is a message with entries in one piece.
func packed(entries []byte, options string, t testing.TB) []byte {
	b := msgp.AppendString(msgp.AppendArrayHeader(nil, 3), "app")
	return append(msgp.AppendBytes(b, entries), value(t, options)...)
}

func answer(t *testing.T, c net.Conn) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := msgp.NewReaderSize(c, 16).CopyNext(&b); err != nil {
		t.Fatal(err)
	}
	return string(record.AppendJSON(nil, b.Bytes(), false))
}

func TestForwardModes(t *testing.T) {
	two := []string{`app {"date":3.5,"a":1}`, `app {"date":4.0,"a":2}`}
	entries := append(msgp.AppendArrayHeader(msgp.AppendString(msgp.AppendArrayHeader(nil, 2), "app"), 2), events(t)...)
	var zipped bytes.Buffer
	for _, half := range [][]byte{events(t)[:10], events(t)[10:]} { // members one behind another
		zipped.WriteString(zip(string(half)))
	}
	for _, test := range []struct {
		name    string
		message []byte
		want    []string
		answer  string
	}{
		{"a message", value(t, `["app",4,{"a":2}]`), two[1:], ""},
		{"a message with an option", value(t, `["app",4,{"a":2},{"chunk":"c1"}]`), two[1:], `{"ack":"c1"}`},
		{"entries", entries, two, ""},
		{"entries with options that are nothing", value(t, `["app",[[4,{"a":2}]],null]`), two[1:], ""},
		{"packed", packed(events(t), `{"size":2,"chunk":"c2"}`, t), two, `{"ack":"c2"}`},
		{"packed and compressed", packed(zipped.Bytes(), `{"compressed":"gzip","chunk":"c3"}`, t), two, `{"ack":"c3"}`},
		{"nothing that is acknowledged", packed(nil, `{"chunk":"c4"}`, t), nil, `{"ack":"c4"}`},
		{"a sign of life, and a message", append([]byte{0xc0}, value(t, `["app",4,{"a":2}]`)...), two[1:], ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := newIntake()
			c := dial(t, "tcp", startForward(t, in, nil))
			for range 2 {
				write(t, c, string(test.message))
				if in.want(t, test.want...); test.answer != "" {
					if got := answer(t, c); got != test.answer {
						t.Fatalf("answered %s, want %s", got, test.answer)
					}
				}
			}
		})
	}
}

func TestWhatIsNotTakenIsNotAcknowledged(t *testing.T) {
	in := newIntake()
	in.gate = make(chan struct{})
	at := startForward(t, in, nil)
	c := dial(t, "tcp", at)
	write(t, c, string(packed(events(t), `{"chunk":"c"}`, t)))
	said := make(chan string, 1)
	go func() { said <- answer(t, c) }()
	select {
	case text := <-said:
		t.Fatalf("answered %s", text)
	case in.gate <- struct{}{}: // it is being taken
	}
	if got := <-said; got != `{"ack":"c"}` {
		t.Fatalf("answered %s", got)
	}
	close(in.gate)
	in.mu.Lock()
	in.fail = context.DeadlineExceeded
	in.mu.Unlock()
	c = dial(t, "tcp", at)
	write(t, c, string(packed(events(t), `{"chunk":"c"}`, t)))
	ended(t, c)
}

func TestTagsOfForward(t *testing.T) {
	in := newIntake()
	c := dial(t, "tcp", startForward(t, in, func(o *ForwardOptions) { o.TagPrefix = "from." }))
	write(t, c, string(value(t, `["app",4,{"a":2}]`)))
	in.want(t, `from.app {"date":4.0,"a":2}`)
	path := filepath.Join(t.TempDir(), "socket")
	c = dial(t, "unix", startForward(t, in, func(o *ForwardOptions) { o.Tag, o.UnixPath = "mine", path }))
	write(t, c, string(value(t, `["app",4,{"a":2}]`)))
	in.want(t, `mine {"date":4.0,"a":2}`)
}

func TestBrokenForwardFrames(t *testing.T) {
	in := newIntake()
	at := startForward(t, in, func(o *ForwardOptions) { o.BufferMaxSize = 100_000 })
	good := string(value(t, `["app",4,{"a":2}]`))
	for name, text := range map[string]string{
		"no array":               "GET / HTTP/1.1\r\n",
		"a byte that is nothing": "\xc1",
		"too few":                string(value(t, `["app"]`)),
		"no tag":                 string(value(t, `[1,4,{}]`)),
		"no time":                string(value(t, `["app",{},{}]`)),
		"no record":              string(value(t, `["app",4,5]`)),
		"no entries":             string(value(t, `["app",[5]]`)),
		"no option":              string(value(t, `["app",4,{},5]`)),
		"too many":               string(value(t, `["app",[],{},5]`)),
		"packed nonsense":        string(packed([]byte("x"), `{}`, t)),
		"half of the entries":    string(packed(events(t)[:20], `{}`, t)),
		"half of gzip":           string(packed([]byte(zip(string(events(t)))[:30]), `{"compressed":"gzip"}`, t)),
		"no gzip":                string(packed(events(t), `{"compressed":"gzip"}`, t)),
		"another compression":    string(packed(events(t), `{"compressed":"lzma"}`, t)),
		"metrics":                string(packed(events(t), `{"fluent_signal":1}`, t)),
		"a bomb":                 string(packed([]byte(zip(strings.Repeat("\x00", 1<<20))), `{"compressed":"gzip"}`, t)),
		"a claim of 4 GiB":       "\x93\xa1x\xc6\xff\xff\xff\xff" + strings.Repeat("x", 200_000),
		"a deep value":           strings.Repeat("\x91", 90_000) + strings.Repeat("\x91", 90_000),
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, "tcp", at)
			write(t, c, good)
			in.want(t, `app {"date":4.0,"a":2}`)
			_, _ = c.Write([]byte(text)) // the other side may have closed
			_ = c.(*net.TCPConn).CloseWrite()
			buf := make([]byte, 1)
			if n, _ := c.Read(buf); n > 0 {
				t.Fatalf("answered %q", buf)
			}
			select {
			case got := <-in.taken:
				t.Fatalf("took %s", got)
			default:
			}
		})
	}
}

func TestHandshake(t *testing.T) {
	for _, test := range []struct {
		name                string
		key, user, password string
		ok                  bool
	}{
		{"as it should be", "secret", "u", "p", true},
		{"another key", "other", "u", "p", false},
		{"another password", "secret", "u", "q", false},
		{"an unknown user", "secret", "v", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			in := newIntake()
			c := dial(t, "tcp", startForward(t, in, func(o *ForwardOptions) {
				o.SharedKey, o.Users, o.SelfHostname = "secret", []string{"u p"}, "here"
			}))
			r := msgp.NewReaderSize(c, 16)
			read := func() []byte {
				var b bytes.Buffer
				if _, err := r.CopyNext(&b); err != nil {
					t.Fatal(err)
				}
				return b.Bytes()
			}
			hello := read()
			find := func(key string) []byte {
				_, rest, _ := msgp.ReadArrayHeaderBytes(hello)
				rest, _ = record.Skip(rest)
				path, err := record.ParsePath("$" + key)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := record.Text(path.Find(rest))
				return text
			}
			nonce, auth := find("nonce"), find("auth")
			if len(nonce) != 16 || len(auth) != 16 {
				t.Fatalf("the nonce is %x, and the other salt %x", nonce, auth)
			}
			ping := msgp.AppendArrayHeader(nil, 6)
			for _, s := range []string{
				"PING", "there", "salt", digest([]byte("salt"), []byte("there"), nonce, []byte(test.key)),
				test.user, digest(auth, []byte(test.user), []byte(test.password)),
			} {
				ping = msgp.AppendString(ping, s)
			}
			write(t, c, string(ping))
			pong := string(record.AppendJSON(nil, read(), false))
			if !test.ok {
				if !strings.HasPrefix(pong, `["PONG",false,"`) || strings.Contains(pong, "secret") {
					t.Fatalf("answered %s", pong)
				}
				ended(t, c)
				return
			}
			if want := `["PONG",true,"","here","` + digest([]byte("salt"), []byte("here"), nonce, []byte("secret")) + `"]`; pong != want {
				t.Fatalf("answered %s, want %s", pong, want)
			}
			write(t, c, string(value(t, `["app",4,{"a":2}]`)))
			in.want(t, `app {"date":4.0,"a":2}`)
		})
	}
	t.Run("none", func(t *testing.T) {
		in := newIntake()
		c := dial(t, "tcp", startForward(t, in, func(o *ForwardOptions) { o.SharedKey = "secret" }))
		answer(t, c) // HELO
		write(t, c, string(value(t, `["app",4,{"a":2}]`)))
		ended(t, c)
		if got := in.take(); !slices.Equal(got, nil) {
			t.Fatalf("took %q", got)
		}
	})
}

func TestFaultsOfAForwardInput(t *testing.T) {
	_, err := NewForward(ForwardOptions{Address: Address{Port: -1}, Users: []string{"u"}, UnixPerm: 0o7777, BufferMaxSize: -1})
	wantFaults(t, err, "port", "security.users", "unix_perm", "buffer_max_size")
	_, err = NewForward(ForwardOptions{SharedKey: "x", EmptySharedKey: true})
	wantFaults(t, err, "empty_shared_key")
}

func FuzzForward(f *testing.F) {
	f.Add(value(f, `["app",4,{"a":2},{"chunk":"c"}]`))
	f.Add(packed(events(f), `{"size":2,"chunk":"c2"}`, f))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := NewForward(ForwardOptions{BufferMaxSize: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		in := newIntake()
		p := &peer{Forward: s, into: in}
		p.in.R = bytes.NewReader(b)
		p.r = msgp.NewReaderSize(&p.in, 16)
		for err == nil {
			var message []byte
			if message, err = p.next(); err == nil {
				err = p.message(message)
			}
		}
		if err := in.Take(t.Context(), p.list...); err != nil {
			t.Fatal(err)
		}
	})
}
