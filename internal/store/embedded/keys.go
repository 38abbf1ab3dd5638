package embedded

import (
	"encoding/binary"
	"math"

	"github.com/reprisehq/reprise/internal/job"
)

// Keys. One leading byte tells the kind; jobs, payloads and failures sort by
// id, which is the order of creation, so loading reads forwards.
const (
	keyJob       = 'j' // id -> job without payload
	keyPayload   = 'p' // payload ref -> bytes
	keyFailure   = 'f' // id, number (4) -> failure record
	keyRow       = 'r' // table (1), key -> row
	keyReceiptAt = 't' // due (8), hash (16) -> more hashes (16 each)
)

func jobKey(b []byte, id job.ID) []byte     { return append(append(b, keyJob), id[:]...) }
func payloadKey(b []byte, id job.ID) []byte { return append(append(b, keyPayload), id[:]...) }

func failureKey(b []byte, id job.ID, number uint32) []byte {
	b = append(append(b, keyFailure), id[:]...)
	return binary.BigEndian.AppendUint32(b, number)
}

// failureRange is where the failure records of a job are.
func failureRange(id job.ID) (from, to []byte) {
	return failureKey(nil, id, 0), append(failureKey(nil, id, math.MaxUint32), 0)
}

func rowKey(b []byte, t job.Table, key string) []byte {
	return append(append(b, keyRow, byte(t)), key...)
}

func receiptAtKey(b []byte, due job.Millis, hash []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, keyReceiptAt), uint64(due))
	return append(b, hash...)
}
