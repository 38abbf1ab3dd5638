package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// openStates are the states of a job that is not finished. Finished ones are
// not counted: a server may be set to keep them.
const openStates = "scheduled,ready,in_flight"

const apiTimeout = 2 * time.Minute

// call makes one request outside the clock and decodes the answer into result, if there is one.
func (s *server) call(ctx context.Context, method, path string, result any) error {
	request, err := http.NewRequestWithContext(ctx, method, s.addr.scheme()+"://"+s.addr.host+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if s.addr.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.addr.token)
	}
	api := &http.Client{Timeout: apiTimeout, Transport: &http.Transport{TLSClientConfig: s.addr.tls.Clone(), DisableKeepAlives: true}}
	answer, err := api.Do(request)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = answer.Body.Close() }() // read to its end below
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode != http.StatusOK {
		return response{answer.StatusCode, body}.unexpected(method + " " + path)
	}
	if err := json.Unmarshal(body, result); err != nil {
		return fmt.Errorf("%s %s answered %q: %w", method, path, clip(body), err)
	}
	return nil
}

func (s *server) version(ctx context.Context) (string, error) {
	var answer struct {
		Version string `json:"version"` // of the protocol of Zizq that it speaks
		Reprise string `json:"reprise"` // its own; other servers have none
	}
	err := s.call(ctx, http.MethodGet, "/version", &answer)
	return cmp.Or(answer.Reprise, answer.Version), err
}

// count is the number of unfinished jobs of a queue.
func (s *server) count(ctx context.Context, queue string) (int64, error) {
	answer := struct {
		Count *int64 `json:"count"`
	}{}
	path := "/jobs/count?queue=" + url.QueryEscape(queue) + "&status=" + url.QueryEscape(openStates)
	if err := s.call(ctx, http.MethodGet, path, &answer); err != nil {
		return 0, err
	}
	if answer.Count == nil {
		return 0, fmt.Errorf("GET %s answered without a count", path)
	}
	return *answer.Count, nil
}

// empty deletes what a phase left in a queue of a server that lives on.
func (s *server) empty(ctx context.Context, queue string) error {
	var answer struct {
		Deleted int64 `json:"deleted"`
	}
	return s.call(ctx, http.MethodDelete, "/jobs?queue="+url.QueryEscape(queue), &answer)
}
