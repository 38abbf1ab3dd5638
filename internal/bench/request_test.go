package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// parse reads a request as a server would.
func parse(t *testing.T, request []byte) (*http.Request, []byte) {
	t.Helper()
	rest := bufio.NewReader(bytes.NewReader(request))
	r, err := http.ReadRequest(rest)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if n := rest.Buffered(); n > 0 {
		t.Errorf("%d bytes behind the request", n)
	}
	return r, body
}

func TestEnqueueRequestsCarryNumberedPayloadsOfTheGivenSize(t *testing.T) {
	t.Parallel()
	type job struct {
		Type, Queue string
		Payload     json.RawMessage
		Backoff     struct {
			Base int `json:"base_ms"`
		}
	}
	for _, payload := range []int{payloadBytesMin, 128, 5000} {
		request := newEnqueueRequest("h:1", "q", 3, payload, stormBackoff)
		request.number(98)
		r, body := parse(t, request.bytes)
		var bulk struct{ Jobs []job }
		if err := json.Unmarshal(body, &bulk); err != nil || len(bulk.Jobs) != 3 || r.URL.Path != "/jobs/bulk" {
			t.Fatalf("%s %s: %v", r.URL.Path, body, err)
		}
		for i, j := range bulk.Jobs {
			number, ok := lineSequence(j.Payload)
			if len(j.Payload) != payload || !ok || number != int64(98+i) || j.Queue != "q" || j.Backoff.Base != 10 {
				t.Errorf("job %d: %+v", i, j)
			}
		}
	}
	request := newEnqueueRequest("h:1", "q", 1, 128, "")
	request.number(7)
	r, body := parse(t, request.bytes)
	var single job
	if err := json.Unmarshal(body, &single); err != nil || r.URL.Path != "/jobs" || len(single.Payload) != 128 {
		t.Errorf("%s %s: %v", r.URL.Path, body, err)
	}
}

func TestAcknowledgementsHaveTheRightLength(t *testing.T) {
	t.Parallel()
	id := []byte("03gq0x7k2m4v9c1d8f5h6j0a1")
	var request ackRequest
	for _, ids := range []int{1, 2, ackIDsMax} {
		request.reset()
		for range ids {
			request.add(id)
		}
		r, body := parse(t, request.finish("h:1"))
		var ack struct{ IDs []string }
		if err := json.Unmarshal(body, &ack); err != nil || len(ack.IDs) != ids || r.URL.Path != "/jobs/success" {
			t.Errorf("%d ids: %s %s: %v", ids, r.URL.Path, body, err)
		}
	}
}

func TestAFailureNamesItsJob(t *testing.T) {
	t.Parallel()
	request := newFailureRequest("h:1")
	r, body := parse(t, request.of(jobID([]byte("03gq0x7k2m4v9c1d8f5h6j0a1"))))
	if r.URL.Path != "/jobs/03gq0x7k2m4v9c1d8f5h6j0a1/failure" || !json.Valid(body) {
		t.Errorf("%s %s", r.URL.Path, body)
	}
}

func TestTheTakeRequestNamesQueueAndPrefetch(t *testing.T) {
	t.Parallel()
	r, _ := parse(t, takeRequest("h:1", "q", 2000))
	if r.URL.String() != "/jobs/take?prefetch=2000&queue=q" || r.Header.Get("Accept") != "application/x-ndjson" {
		t.Errorf("%s %v", r.URL, r.Header)
	}
}

func TestEveryRequestCarriesTheToken(t *testing.T) {
	t.Parallel()
	ack := &ackRequest{}
	ack.reset()
	head := site{host: "h:1", token: "rp_x"}.head()
	for _, request := range [][]byte{
		newEnqueueRequest(head, "q", 2, 128, "").bytes, takeRequest(head, "q", 1), newFailureRequest(head).bytes, ack.finish(head),
	} {
		if r, _ := parse(t, request); r.Header.Get("Authorization") != "Bearer rp_x" || r.Host != "h:1" {
			t.Errorf("%s %s: %v", r.Method, r.URL, r.Header)
		}
	}
	if r, _ := parse(t, takeRequest(site{host: "h:1"}.head(), "q", 1)); len(r.Header["Authorization"]) != 0 {
		t.Errorf("without a token: %v", r.Header)
	}
}
