package listen

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// ForwardOptions are what an input for the forward protocol accepts. Their names are those of
// the original.
type ForwardOptions struct {
	Address
	Tag            string // of all records; "" = the one that comes with them
	TagPrefix      string // in front of it
	SharedKey      string
	EmptySharedKey bool     // the handshake without a key, for users
	SelfHostname   string   // in the handshake; "" = that of the machine
	Users          []string // security.users: "name password"
	UnixPath       string   // of a socket instead of a port
	UnixPerm       fs.FileMode
	BufferMaxSize  int // bytes of a message, also after it was inflated; 0 = 6144000
}

// Forward takes records as fluentd and Fluent Bit send them to each other.
type Forward struct {
	o     ForwardOptions
	users map[string]string
}

// handshakeMost is how long a stranger may take to say who it is.
const handshakeMost = 10 * time.Second

// NewForward makes a source. The error names all options that are wrong.
func NewForward(o ForwardOptions) (*Forward, error) {
	var f faults
	o.faults(f.add)
	f.size("buffer_max_size", &o.BufferMaxSize, 6_144_000, 1<<30)
	s := &Forward{users: map[string]string{}}
	for _, text := range o.Users {
		name, password, ok := strings.Cut(strings.TrimSpace(text), " ")
		if !ok {
			f.add("security.users: %q is not a name and a password with a space between", name)
		}
		s.users[name] = strings.TrimSpace(password)
	}
	if len(o.Users) > 0 && o.SharedKey == "" && !o.EmptySharedKey {
		f.add("security.users: they are asked for in the handshake; set shared_key, or empty_shared_key on")
	}
	if o.SharedKey != "" && o.EmptySharedKey {
		f.add("empty_shared_key: it is on, and shared_key is set; remove one of them")
	}
	if o.UnixPerm > 0o777 {
		f.add("unix_perm: %o is not between 0001 and 0777", o.UnixPerm)
	}
	if o.SelfHostname == "" {
		o.SelfHostname, _ = os.Hostname() // "" is as good
	}
	s.o = o
	return s, f.err()
}

// Run takes connections until ctx ends.
func (s *Forward) Run(ctx context.Context, into connect.Intake) error {
	var l net.Listener
	var err error
	if s.o.UnixPath == "" {
		l, err = s.o.open(ctx, connectionsMost)
	} else if l, err = s.o.openUnix(ctx, s.o.UnixPath, s.o.UnixPerm); err != nil {
		err = fmt.Errorf("unix_path: %w", err)
	}
	if err != nil {
		return err
	}
	return serve(ctx, l, s.o.Log, func(ctx context.Context, c net.Conn) error { return s.handle(ctx, c, into) })
}

// peer is whoever sends over one connection.
type peer struct {
	*Forward
	c    net.Conn
	into connect.Intake

	in   io.LimitedReader // what is left of a message
	r    *msgp.Reader
	list []connect.Records // not taken yet
	size int
	acks []byte // what is said when they are
}

func (s *Forward) handle(ctx context.Context, c net.Conn, into connect.Intake) error {
	p := &peer{Forward: s, c: c, into: into}
	pump := connect.NewPump(&patient{Conn: c}, func() error { return p.take(ctx) })
	defer pump.Stop(io.ErrClosedPipe)
	p.in.R = pump
	p.r = msgp.NewReaderSize(&p.in, 64<<10)
	if s.o.SharedKey != "" || s.o.EmptySharedKey {
		late := time.AfterFunc(handshakeMost, func() { _ = c.Close() })
		err := p.handshake()
		if late.Stop(); err != nil {
			return err
		}
	}
	for {
		message, err := p.next()
		if err == nil {
			err = p.message(message)
		}
		if err != nil {
			if err2 := p.take(ctx); err2 != nil {
				return err2
			} else if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if p.size >= connect.BundleBytesMax {
			if err := p.take(ctx); err != nil {
				return err
			}
		}
	}
}

// next reads one value of MessagePack.
func (p *peer) next() ([]byte, error) {
	p.in.N = int64(p.o.BufferMaxSize)
	var b bytes.Buffer
	_, err := p.r.CopyNext(&b)
	switch {
	case err == nil:
		return b.Bytes(), nil
	case p.in.N <= 0:
		return nil, fmt.Errorf("a message is longer than buffer_max_size, %d bytes", p.o.BufferMaxSize)
	case errors.Is(err, io.EOF) && b.Len() == 0:
		return nil, io.EOF
	default:
		return nil, fmt.Errorf("this is not the forward protocol: %w", err)
	}
}

// take takes what has come, and acknowledges it.
func (p *peer) take(ctx context.Context) error {
	if len(p.list) > 0 {
		if err := p.into.Take(ctx, p.list...); err != nil {
			return err
		}
		p.list, p.size = nil, 0
	}
	err := p.say(p.acks)
	p.acks = p.acks[:0]
	return err
}

func (p *peer) say(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if err := p.c.SetWriteDeadline(deadline(writeTime)); err != nil {
		return err
	}
	_, err := p.c.Write(b)
	return err
}

var errMessage = errors.New("this is not the forward protocol: [tag, time, record], [tag, entries] or [tag, packed entries] is expected")

// text reads a value that is a text or binary data.
func text(b []byte) (value, rest []byte, err error) {
	value, ok := record.Text(b)
	if !ok {
		return nil, nil, errMessage
	}
	rest, err = record.Skip(b)
	return value, rest, err
}

// message gathers the events of one message.
func (p *peer) message(b []byte) error {
	if len(b) == 1 && msgp.IsNil(b) {
		return nil // it says that it is alive
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil || n < 2 || n > 4 {
		return errMessage
	}
	tag, rest, err := text(rest)
	if err != nil {
		return err
	}
	first, left := rest, n-2
	if rest, err = record.Skip(rest); err != nil {
		return err
	}
	first = first[:len(first)-len(rest)]
	var events []byte
	switch msgp.NextType(first) {
	case msgp.ArrayType:
		_, events, err = msgp.ReadArrayHeaderBytes(first)
	case msgp.BinType, msgp.StrType:
		events, _ = record.Text(first)
	default:
		if left == 0 {
			return errMessage
		}
		body := rest
		if rest, err = record.Skip(rest); err != nil {
			return err
		}
		events, left = append(append([]byte{0x92}, first...), body[:len(body)-len(rest)]...), left-1
	}
	if err != nil || left > 1 {
		return errMessage
	}
	var o option
	if left == 1 {
		if o, err = readOption(rest); err != nil {
			return err
		}
	}
	return p.gather(string(tag), events, o)
}

// gather adds the events of a message to those that are taken next.
func (p *peer) gather(tag string, events []byte, o option) error {
	switch o.compressed {
	case "", "text":
	case "gzip":
		var err error
		if events, err = inflate(events, int64(p.o.BufferMaxSize)); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the entries are compressed with %q; gzip is expected", o.compressed)
	}
	if o.signal != 0 {
		return fmt.Errorf("these are no logs but the signal %d; send logs only", o.signal)
	}
	count, _, err := record.Count(events)
	if err != nil {
		return fmt.Errorf("the entries are broken: %w", err)
	}
	if tag = p.o.TagPrefix + tag; p.o.Tag != "" {
		tag = p.o.Tag
	}
	if count > 0 {
		if n := len(p.list); n > 0 && p.list[n-1].Tag == tag {
			l := &p.list[n-1]
			l.Events, l.Count = append(l.Events, events...), l.Count+count
		} else {
			p.list = append(p.list, connect.Records{Tag: tag, Events: events, Count: count})
		}
		p.size += len(events)
	}
	if o.chunk != nil {
		p.acks = msgp.AppendStringFromBytes(msgp.AppendString(msgp.AppendMapHeader(p.acks, 1), "ack"), o.chunk)
	}
	return nil
}

// option is what a message says of itself.
type option struct {
	chunk      []byte // acknowledged; nil = not asked for
	compressed string
	signal     int64 // 0 are logs
}

func readOption(b []byte) (o option, err error) {
	if msgp.IsNil(b) {
		return o, nil
	}
	n, b, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return o, errMessage
	}
	for range n {
		var key, value []byte
		if key, b, err = text(b); err != nil {
			return o, err
		}
		value = b
		if b, err = record.Skip(b); err != nil {
			return o, err
		}
		known, ok := record.Text(value)
		switch string(key) {
		case "chunk":
			if ok {
				o.chunk = known
			}
		case "compressed":
			o.compressed = string(known)
		case "fluent_signal":
			o.signal, _, _ = msgp.ReadInt64Bytes(value) // what is no number are logs
		}
	}
	return o, nil
}

// handshake lets in who knows the key, and a user's password if there are users.
func (p *peer) handshake() error {
	var salts [32]byte
	if _, err := rand.Read(salts[:]); err != nil {
		return err
	}
	nonce, auth := salts[:16], salts[16:]
	if len(p.users) == 0 {
		auth = nil
	}
	hello := msgp.AppendMapHeader(msgp.AppendString(msgp.AppendArrayHeader(nil, 2), "HELO"), 3)
	hello = msgp.AppendBytes(msgp.AppendString(hello, "nonce"), nonce)
	hello = msgp.AppendBytes(msgp.AppendString(hello, "auth"), auth)
	hello = msgp.AppendBool(msgp.AppendString(hello, "keepalive"), true)
	if err := p.say(hello); err != nil {
		return err
	}
	b, err := p.next()
	if err != nil {
		return err
	}
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil || n != 6 {
		return errPing
	}
	var said [6][]byte // PING, name, salt, digest, user, digest of the password
	for i := range said {
		if said[i], b, err = text(b); err != nil {
			return errPing
		}
	}
	if string(said[0]) != "PING" {
		return errPing
	}
	key, reason := []byte(p.o.SharedKey), ""
	password, known := p.users[string(said[4])]
	switch {
	case !same(said[3], said[2], said[1], nonce, key):
		reason = "the shared key is another one"
	case len(p.users) > 0 && (!same(said[5], auth, said[4], []byte(password)) || !known):
		reason = "the user or the password is not known"
	}
	pong := msgp.AppendBool(msgp.AppendString(msgp.AppendArrayHeader(nil, 5), "PONG"), reason == "")
	pong = msgp.AppendString(msgp.AppendString(pong, reason), p.o.SelfHostname)
	answer := ""
	if reason == "" {
		answer = digest(said[2], []byte(p.o.SelfHostname), nonce, key)
	}
	if err := p.say(msgp.AppendString(pong, answer)); err != nil || reason == "" {
		return err
	}
	return errors.New("the handshake is refused: " + reason)
}

var errPing = errors.New("this is no answer to the handshake of the forward protocol; set shared_key where it comes from")

func digest(list ...[]byte) string {
	sum := sha512.Sum512(bytes.Join(list, nil))
	return hex.EncodeToString(sum[:])
}

func same(said []byte, list ...[]byte) bool {
	return subtle.ConstantTimeCompare(said, []byte(digest(list...))) == 1
}
