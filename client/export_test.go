package client

import "net/http/httptest"

// NewExampleServer is the fake over TCP, for the examples.
func NewExampleServer() *httptest.Server {
	return httptest.NewServer(newWire(func(string, ...any) {}))
}
