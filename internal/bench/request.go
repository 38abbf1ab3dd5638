package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// payloadBytesMin is the smallest payload that can carry its number.
const payloadBytesMin = len(`{"seq":"","pad":""}`) + sequenceDigits

// enqueueRequest is a whole enqueue request, built once per connection. Only
// the numbers in its payloads are rewritten between calls.
type enqueueRequest struct {
	bytes   []byte
	numbers []int // where the number of each job stands
	keys    []int // and where in its unique key, if it has one
}

// newEnqueueRequest makes a request for batch jobs; extra is further fields
// of each job, beginning with a comma, or nothing.
func newEnqueueRequest(host, queue string, batch, payloadBytes int, extra string) *enqueueRequest {
	const mark = `"seq":"`
	pad := strings.Repeat("x", payloadBytes-payloadBytesMin)
	one := fmt.Sprintf(`{"type":"bench","queue":"%s","payload":{"seq":"%0*d","pad":"%s"}%s}`,
		queue, sequenceDigits, 0, pad, extraFor(extra, queue))
	path, text := "/jobs", one
	if batch > 1 {
		path = "/jobs/bulk"
		text = `{"jobs":[` + strings.Repeat(one+",", batch-1) + one + `]}`
	}
	r := &enqueueRequest{bytes: postRequest(host, path, text)}
	at := 0
	for range batch {
		at += bytes.Index(r.bytes[at:], []byte(mark)) + len(mark)
		r.numbers = append(r.numbers, at)
		if strings.Contains(extra, uniqueMark) {
			r.keys = append(r.keys, at+bytes.Index(r.bytes[at:], []byte(uniqueMark))+len(uniqueMark))
		}
	}
	return r
}

// number gives the jobs of the request the numbers first, first+1, ...
func (r *enqueueRequest) number(first int64) {
	for i, at := range r.numbers {
		putDigits(r.bytes[at:at+sequenceDigits], first+int64(i))
	}
	for i, at := range r.keys {
		putDigits(r.bytes[at:at+sequenceDigits], first+int64(i))
	}
}

func putDigits(dst []byte, n int64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

func postRequest(host, path, body string) []byte {
	return []byte(postHead(host, path, len(body)) + body)
}

func postHead(host, path string, bodyBytes int) string {
	return "POST " + path + " HTTP/1.1\r\nHost: " + host +
		"\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(bodyBytes) + "\r\n\r\n"
}

func takeRequest(host, queue string, prefetch int) []byte {
	return fmt.Appendf(nil, "GET /jobs/take?prefetch=%d&queue=%s HTTP/1.1\r\nHost: %s\r\nAccept: application/x-ndjson\r\n\r\n",
		prefetch, queue, host)
}

// failureRequest reports one failed attempt; only the id changes.
type failureRequest struct {
	bytes []byte
	at    int
}

func newFailureRequest(host string) *failureRequest {
	const before = "POST /jobs/"
	id := strings.Repeat("0", jobIDBytes)
	return &failureRequest{
		bytes: postRequest(host, "/jobs/"+id+"/failure", `{"message":"bench: first attempt fails"}`),
		at:    len(before),
	}
}

func (r *failureRequest) of(id jobID) []byte {
	copy(r.bytes[r.at:], id[:])
	return r.bytes
}

// jobID is an id by value, so that passing one on costs no allocation.
type jobID [jobIDBytes]byte

// ackRequest collects the ids of one bulk acknowledgement behind room for a
// head, which is only known when the last id is in.
type ackRequest struct {
	bytes []byte
	ids   int
}

const (
	ackHeadRoom = 512
	ackOpening  = `{"ids":[`
)

func (r *ackRequest) reset() {
	if r.bytes == nil {
		r.bytes = make([]byte, ackHeadRoom, ackHeadRoom+ackIDsMax*(jobIDBytes+3)+64)
	}
	r.bytes = append(r.bytes[:ackHeadRoom], ackOpening...)
	r.ids = 0
}

func (r *ackRequest) add(id []byte) {
	if r.ids > 0 {
		r.bytes = append(r.bytes, ',')
	}
	r.bytes = append(r.bytes, '"')
	r.bytes = append(r.bytes, id...)
	r.bytes = append(r.bytes, '"')
	r.ids++
}

// finish closes the body, puts the head in front and returns the request.
func (r *ackRequest) finish(host string) []byte {
	r.bytes = append(r.bytes, "]}"...)
	head := postHead(host, "/jobs/success", len(r.bytes)-ackHeadRoom)
	start := ackHeadRoom - len(head)
	copy(r.bytes[start:], head)
	return r.bytes[start:]
}
