// Package wire is what goes over the wire, as Go types: the bodies of the
// jobs API, the words that stand in them, and the table of error codes. It
// holds shapes only. Package client talks in them, and whoever speaks to the
// server without that package can use them as they are.
//
// Times are milliseconds since 1970 (UTC), spans end in their unit (_ms). An
// optional field that is not set is left out; counters and priority are always
// there, 0 included. Readers ignore members they do not know, so a newer
// server may add some.
package wire

// BodyBytesMax is how large the body of a request may be, and so the payload of
// a job, where the server's setting body-max says nothing else.
const BodyBytesMax = 64 << 20
