package httpapi

import (
	"net/http"
	"time"
)

// NewServer returns a server that speaks HTTP/1.1 and HTTP/2 on one port:
// without TLS by prior knowledge, with TLS as the client chooses. The caller
// gives it its address, its log and its base context.
//
// It sets no write timeout, for a take never ends; answers that could block
// and takes set their own deadlines.
func NewServer(handler http.Handler) *http.Server {
	s := &http.Server{
		Handler:           handler,
		Protocols:         new(http.Protocols),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       5 * time.Minute, // of a whole request; takes and leases lift it
		IdleTimeout:       5 * time.Minute,
		ConnContext:       withSocket,
		MaxHeaderBytes:    256 << 10, // a list of 2,000 ids has 52 KiB
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 4096, // Node opens 1,024 on one connection
			SendPingTimeout:      15 * time.Second,
			PingTimeout:          15 * time.Second,
			WriteByteTimeout:     writeMax,
		},
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}
