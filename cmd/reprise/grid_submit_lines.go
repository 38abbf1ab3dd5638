package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"time"

	"github.com/reprisehq/reprise/client"
)

// Bounds of one part, which is sent in one call.
const (
	submitAtOnce = 1000
	submitBytes  = 4 << 20
)

// taskLines reads tasks: each line that is not empty is the payload of one.
type taskLines struct {
	lines  *bufio.Scanner
	name   string // of the input, for people
	number int    // of the line that was read last
	next   client.Task
	ahead  []byte // a line that did not fit into the part before
	close  func()
}

// badLine is a line that is no task.
type badLine struct{ text string }

func (b *badLine) Error() string { return b.text }

// openTasks opens the file that is named, or standard input. What can be read twice
// is read to its end first: an error is one of its lines.
func openTasks(stdin io.Reader, args []string, like *client.Task, from int64) (*taskLines, error) {
	l := &taskLines{name: "standard input", close: func() {}}
	in := stdin
	if len(args) == 1 && args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, err
		}
		in, l.name, l.close = file, args[0], func() { _ = file.Close() }
	}
	err := l.check(in)
	if err != nil {
		l.close()
		return nil, err
	}
	l.read(in)
	l.next = *like
	l.next.Seq = from
	return l, nil
}

func (l *taskLines) read(in io.Reader) {
	l.lines, l.number = bufio.NewScanner(in), 0
	l.lines.Buffer(make([]byte, 0, 64<<10), payloadMax)
}

// check reads a file to its end, and goes back to where it was.
func (l *taskLines) check(in io.Reader) error {
	file, ok := in.(*os.File)
	if !ok {
		return nil
	}
	at, err := file.Seek(0, io.SeekCurrent)
	if info, bad := file.Stat(); err != nil || bad != nil || !info.Mode().IsRegular() {
		return nil // a pipe, a terminal
	}
	l.read(file)
	for {
		line, err := l.line()
		if err != nil {
			return err
		}
		if line == nil {
			_, err = file.Seek(at, io.SeekStart)
			return err
		}
	}
}

// line is the next one that is not empty; nil = there are no more.
func (l *taskLines) line() ([]byte, error) {
	for l.lines.Scan() {
		l.number++
		line := bytes.TrimSpace(l.lines.Bytes())
		if len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			return nil, &badLine{fmt.Sprintf("line %d of %s: the payload is not JSON: %s", l.number, l.name, clip(printable(string(line)), 60))}
		}
		return line, nil
	}
	switch err := l.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		const text = "line %d of %s: the payload is larger than %d MiB; keep large data elsewhere and submit a reference"
		return nil, &badLine{fmt.Sprintf(text, l.number+1, l.name, payloadMax>>20)}
	case err != nil:
		return nil, fmt.Errorf("reading tasks: %w", err)
	}
	return nil, nil
}

// taskPart is tasks that are sent together, and the lines that they were.
type taskPart struct {
	tasks []client.Task
	lines []int
	from  string
}

// part reads the next tasks; nil = there are no more.
func (l *taskLines) part() (*taskPart, error) {
	p := &taskPart{from: l.name}
	for size := 0; len(p.tasks) < submitAtOnce; {
		line := l.ahead
		if l.ahead = nil; line == nil {
			var err error
			if line, err = l.line(); err != nil {
				return nil, err
			}
		}
		if line == nil {
			break
		}
		if size += len(line); size > submitBytes && len(p.tasks) > 0 {
			l.ahead = line // the scanner keeps it until the next one
			break
		}
		t := l.next
		t.Payload = json.RawMessage(bytes.Clone(line))
		l.next.Seq++
		p.tasks, p.lines = append(p.tasks, t), append(p.lines, l.number)
	}
	if len(p.tasks) == 0 {
		return nil, nil
	}
	return p, nil
}

var taskIndex = regexp.MustCompile(`tasks\[(\d+)\]`)

// blame names the line of a task that the server refused.
func (p *taskPart) blame(err error) error {
	refused, _ := errors.AsType[*client.Error](err)
	if refused == nil {
		return err
	}
	found := taskIndex.FindStringSubmatch(refused.Message)
	if found == nil {
		return err
	}
	if i, bad := strconv.Atoi(found[1]); bad == nil && i < len(p.lines) {
		return fmt.Errorf("line %d of %s, task %d: %w", p.lines[i], p.from, p.tasks[i].Seq, err)
	}
	return err
}

// takeBack ends a session that this command opened and could not fill, unless
// repeating the command may help.
func takeBack(s *client.Session, sent int64, err error) error {
	bad, _ := errors.AsType[*badLine](err)
	refused, _ := errors.AsType[*client.Error](err)
	if bad == nil && (refused == nil || refused.Code == "" || refused.Temporary()) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, left := s.Cancel(ctx)
	if left == nil && sent == 0 {
		left = s.Forget(ctx)
	}
	switch {
	case left != nil:
		return fmt.Errorf("%w; session %s was opened and is there yet: %w", err, s.ID(), left)
	case sent == 0:
		return fmt.Errorf("%w; nothing was submitted, and there is no session %s", err, s.ID())
	}
	return fmt.Errorf("%w; session %s is cancelled, with the %s before it; \"reprise grid cancel %s --forget\" frees its name", err, s.ID(), plural(sent, "task"), s.ID())
}
