package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/config"
)

// NewLogger returns a logger in the format and at the level of cfg: json to
// stdout, where the programs that start a server read it, the others to
// stderr. terminal says whether a person sits at stderr; that person gets a
// banner, colours, and with format auto the pretty format.
func NewLogger(cfg config.Config, stdout, stderr io.Writer, terminal bool) *slog.Logger {
	format := cfg.LogFormat
	if format == config.LogAuto {
		format = config.LogCompact
		if terminal {
			format = config.LogPretty
		}
	}
	h := &lineHandler{shared: &shared{w: stderr, frame: frameCompact, banner: terminal}}
	h.level.Set(cfg.LogLevel)
	options := &slog.HandlerOptions{Level: &h.level, ReplaceAttr: dropFramed}
	switch format {
	case config.LogJSON:
		h.w, h.frame, h.banner = stdout, frameJSON, false
		options.ReplaceAttr = asMessage
		h.fields = slog.NewJSONHandler(&h.buf, options)
	case config.LogPretty:
		h.frame = framePretty
		if terminal {
			h.frame = frameColour
		}
		fallthrough
	case config.LogCompact, config.LogAuto:
		h.fields = slog.NewTextHandler(&h.buf, options)
	}
	if h.banner {
		h.say("Reprise " + Version)
	}
	return slog.New(h)
}

// SetLevel changes the level of a logger of NewLogger.
func SetLevel(log *slog.Logger, level slog.Level) {
	if h, ok := log.Handler().(*lineHandler); ok {
		h.level.Set(level)
	}
}

// listening tells where an API (primary, admin or unix) is served now. The
// harnesses of Zizq's clients wait for this line, in this shape:
//
//	{"timestamp":...,"level":"INFO","fields":{"message":"listening","api":"primary","addr":"127.0.0.1:7890","scheme":"http"},"target":"reprise"}
func listening(log *slog.Logger, api, addr, scheme string) {
	if h, ok := log.Handler().(*lineHandler); ok && h.banner {
		h.say(fmt.Sprintf("Listening on %s://%s (%s)", scheme, addr, api))
		return
	}
	log.Info("listening", "api", api, "addr", addr, "scheme", scheme)
}

// storing tells where the data is.
func storing(log *slog.Logger, dir string) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if h, ok := log.Handler().(*lineHandler); ok && h.banner {
		h.say("Data in " + dir)
		return
	}
	log.Info("store is open", "root_dir", dir)
}

// lineHandler writes a record as one line: a handler of the standard library
// writes the fields, and frame puts time, level and message around them.
type lineHandler struct {
	*shared
	fields slog.Handler // writes into shared.buf
}

// shared is what a handler and those derived from it write through.
type shared struct {
	level  slog.LevelVar
	banner bool // tell a person at a terminal what has begun
	frame  func(line *bytes.Buffer, r slog.Record, fields []byte)

	mu  sync.Mutex // guards buf and the order of lines
	buf bytes.Buffer
	w   io.Writer
}

// Enabled implements slog.Handler.
func (h *lineHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.fields.Enabled(ctx, l)
}

// Handle implements slog.Handler.
func (h *lineHandler) Handle(ctx context.Context, r slog.Record) error {
	at := r.Time
	r.Time = time.Time{} // the frame writes it
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Reset()
	if err := h.fields.Handle(ctx, r); err != nil {
		return err
	}
	r.Time = at
	var line bytes.Buffer
	h.frame(&line, r, bytes.TrimRight(h.buf.Bytes(), "\n"))
	line.WriteByte('\n')
	_, err := h.w.Write(line.Bytes())
	return err
}

// WithAttrs implements slog.Handler.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lineHandler{h.shared, h.fields.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *lineHandler) WithGroup(name string) slog.Handler {
	return &lineHandler{h.shared, h.fields.WithGroup(name)}
}

// say writes a line for a person. Standard error that cannot be written to
// leaves nobody to tell.
func (s *shared) say(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.w, line+"\n")
}

// asMessage leaves level to the frame and calls the message as Zizq does.
func asMessage(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 {
		switch a.Key {
		case slog.LevelKey:
			if _, ours := a.Value.Any().(slog.Level); ours {
				return slog.Attr{}
			}
		case slog.MessageKey:
			a.Key = "message"
		}
	}
	return a
}

// dropFramed leaves level and message to the frame.
func dropFramed(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.MessageKey {
		return slog.Attr{}
	}
	return asMessage(groups, a)
}

// timeFormat has a fixed width, so that lines sort by time as text.
const timeFormat = "2006-01-02T15:04:05.000000Z"

func frameJSON(line *bytes.Buffer, r slog.Record, fields []byte) {
	line.WriteByte('{')
	if !r.Time.IsZero() {
		fmt.Fprintf(line, `"timestamp":"%s",`, r.Time.UTC().Format(timeFormat))
	}
	fmt.Fprintf(line, `"level":"%s","fields":%s,"target":"reprise"}`, upper(r.Level), fields)
}

func frameCompact(line *bytes.Buffer, r slog.Record, fields []byte) {
	if !r.Time.IsZero() {
		fmt.Fprintf(line, "%s ", r.Time.UTC().Format(timeFormat))
	}
	fmt.Fprintf(line, "%-5s %s", upper(r.Level), oneLine(r.Message))
	if len(fields) > 0 {
		line.WriteByte(' ')
		line.Write(fields)
	}
}

func framePretty(line *bytes.Buffer, r slog.Record, fields []byte) {
	pretty(line, r, fields, func(_, text string) string { return text })
}

func frameColour(line *bytes.Buffer, r slog.Record, fields []byte) {
	pretty(line, r, fields, func(colour, text string) string { return "\x1b[" + colour + "m" + text + "\x1b[0m" })
}

const dim = "2"

func pretty(line *bytes.Buffer, r slog.Record, fields []byte, paint func(colour, text string) string) {
	colour := "32" // green
	switch {
	case r.Level >= slog.LevelError:
		colour = "31"
	case r.Level >= slog.LevelWarn:
		colour = "33"
	case r.Level < slog.LevelInfo:
		colour = dim
	}
	if !r.Time.IsZero() {
		line.WriteString(paint(dim, r.Time.Local().Format("15:04:05.000")) + " ")
	}
	fmt.Fprintf(line, "%s %s", paint(colour, fmt.Sprintf("%-5s", upper(r.Level))), oneLine(r.Message))
	if len(fields) > 0 {
		line.WriteString("  " + paint(dim, string(fields)))
	}
}

func upper(l slog.Level) string { return strings.ToUpper(config.LevelName(l)) }

// oneLine keeps a message from looking like two. Fields are quoted already.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\n\r\x1b") {
		return s
	}
	return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\x1b", `\x1b`).Replace(s)
}
