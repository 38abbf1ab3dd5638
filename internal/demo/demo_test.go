package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func post(t *testing.T, url, body string) (status int, retryAfter string, err error) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("Retry-After"), nil
}

func begin(t *testing.T, weather ...spell) *receiver {
	t.Helper()
	r, err := newReceiver(1, weather)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.close(context.WithoutCancel(t.Context())) })
	return r
}

func TestTheReceiverCountsEventsAndDuplicates(t *testing.T) {
	r := begin(t, spell{name: "fair"})
	for body, want := range map[string]int{`{"id":"a","x":1}`: 204, `{"id":"b"}`: 204, `{"id":""}`: 400, `{"id":7}`: 400, `no`: 400} {
		if got, _, err := post(t, r.url(), body); err != nil || got != want {
			t.Errorf("%s: %d, %v", body, got, err)
		}
	}
	_, _, _ = post(t, r.url(), `{"id":"a"}`)
	seen := r.ledger()
	if seen.delivered["a"] != 2 || seen.delivered["b"] != 1 || seen.answers != (answers{OK: 3, Invalid: 3}) {
		t.Errorf("%+v", seen)
	}
	if n, weather := r.state(); n != 2 || weather != "fair" {
		t.Errorf("%d delivered, %s", n, weather)
	}
}

func TestTheReceiverIsAsBadAsItsWeather(t *testing.T) {
	r := begin(t, spell{busy: 0.5, broken: 0.25})
	for i := range 400 {
		status, after, err := post(t, r.url(), fmt.Sprintf(`{"id":"%d"}`, i))
		if err != nil || (status == 429) != (after == "1") {
			t.Fatalf("%d, Retry-After %q, %v", status, after, err)
		}
	}
	a := r.ledger().answers
	if a.Busy < 160 || a.Busy > 240 || a.Broken < 70 || a.Broken > 130 || a.OK+a.Busy+a.Broken != 400 {
		t.Errorf("%+v", a)
	}
}

func TestTheReceiverGoesDownAndComesBackOnTheSamePort(t *testing.T) {
	r := begin(t, spell{name: "fair"}, spell{name: "down", down: true}, spell{name: "back"})
	if status, _, err := post(t, r.url(), `{"id":"a"}`); err != nil || status != 204 {
		t.Fatalf("%d, %v", status, err)
	}
	if !r.turn(t.Context(), r.weather[1]) {
		t.Fatal("it cannot go down")
	}
	if status, _, err := post(t, r.url(), `{"id":"b"}`); err == nil {
		t.Errorf("it answers %d although it is down", status)
	}
	if !r.turn(t.Context(), r.weather[2]) {
		t.Fatal("it cannot come back")
	}
	if status, _, err := post(t, r.url(), `{"id":"b"}`); err != nil || status != 204 {
		t.Errorf("%d, %v", status, err)
	}
	if n, weather := r.state(); n != 2 || weather != "back" {
		t.Errorf("%d delivered, %s", n, weather)
	}
}

func TestTheUsualWeatherEndsFair(t *testing.T) {
	total := time.Duration(0)
	for i, s := range usualWeather {
		last := i == len(usualWeather)-1
		if (s.lasts == 0) != last || last && s.down || s.busy+s.broken > 1 {
			t.Errorf("spell %d: %+v", i, s)
		}
		total += s.lasts
	}
	if total > 25*time.Second {
		t.Errorf("the bad weather lasts %s", total)
	}
}

func TestEventsThatCannotBeCountedAreRefused(t *testing.T) {
	for in, says := range map[string]string{
		"":                                 "no events",
		"\n\n":                             "no events",
		"{\"id\":\"a\"}\nno\n":             "line 2",
		"{\"id\":\"a\"}\n{\"x\":1}":        "line 2",
		"{\"id\":\"a\"}\n\n{\"id\":\"a\"}": "line 3",
	} {
		d := &demo{Options: Options{Events: strings.NewReader(in)}, ids: map[string]bool{}}
		if _, err := d.read(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", in, err)
		}
	}
	d := &demo{Options: Options{Events: strings.NewReader(`{"id":"a","account":"x","n":9007199254740993}`)}, ids: map[string]bool{}}
	jobs, err := d.read()
	if err != nil || jobs[0].Type != "event" || jobs[0].Group != "x" || jobs[0].IdempotencyKey != "a" ||
		!strings.Contains(fmt.Sprintf("%s", jobs[0].Payload), "9007199254740993") {
		t.Errorf("%+v, %v", jobs, err)
	}
}

func TestAServerThatDoesNotStartSaysWhy(t *testing.T) {
	script := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho no such luck >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	_, err := Run(t.Context(), Options{Program: script, Events: strings.NewReader(`{"id":"a"}`), Dir: t.TempDir(), Out: &out})
	if err == nil || !strings.Contains(err.Error(), "no such luck") || !strings.Contains(err.Error(), "starting the server") {
		t.Errorf("%v", err)
	}
	_, err = Run(t.Context(), Options{Program: script + ".gone", Events: strings.NewReader(`{"id":"a"}`), Dir: t.TempDir(), Out: &out})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestTheAccountFailsWhenSomethingIsLost(t *testing.T) {
	r := &Report{Enqueued: 3, Delivered: 2, Lost: 1, Attempts: 9, Retries: 6}
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "1 of 3") {
		t.Errorf("%v", err)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"enqueued  3 ", "delivered  2 ", "attempts  9 ", "retries  6 ", "dead  0 ", "duplicates  0 ", "lost  1 "} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("%q is missing in\n%s", text, out.String())
		}
	}
	if err := (&Report{Enqueued: 3, Delivered: 3}).Err(); err != nil {
		t.Error(err)
	}
}
