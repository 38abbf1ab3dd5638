package embedded

import (
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// fill sets every field below a value, each to something else; what is an
// enumeration gets the first value above zero.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n * 7))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n * 11))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(*n+i) % 256)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n)
			fill(value, n)
			v.SetMapIndex(key, value)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[job.Limit]() {
			v.Set(reflect.ValueOf(job.LimitOf(uint32(*n))))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(v.Type().String())
	}
}

// full returns a value with every field set.
func full[T any]() *T {
	v, n := new(T), 0
	fill(reflect.ValueOf(v).Elem(), &n)
	return v
}

// stored is a value of which the stored form is pinned.
type stored struct {
	name   string
	value  any
	write  func() ([]byte, error)
	read   func([]byte) (any, error)
	anyEnd bool // its last field has no length: it cannot be cut short
}

func storedRow(name string, row job.Row) stored {
	return stored{
		name: name, value: row, anyEnd: row.Table() == job.DoorSettings || row.Table() == job.Cursors,
		write: func() ([]byte, error) { return appendRow(nil, row) },
		read:  func(b []byte) (any, error) { return decodeRow(row.Table(), row.Key(), b) },
	}
}

func storedJob(name string, j *job.Job) stored {
	return stored{
		name: name, value: j,
		write: func() ([]byte, error) { return appendJob(nil, j), nil },
		read:  func(b []byte) (any, error) { return decodeJob(j.ID, b, newNames()) },
	}
}

// everyLayout is at least one value of each kind that is stored, and between those
// of a kind every field is set.
func everyLayout() (list []stored) {
	inline, apart := full[job.Job](), full[job.Job]()
	inline.Extras.Result = job.InlineResult([]byte("[1]"))
	apart.Extras.Result.Bytes = nil
	for i, j := range append(sampleJobs(), inline, apart) {
		list = append(list, storedJob(fmt.Sprintf("job %d", i), j))
	}
	for bit := range 23 { // each optional part by itself
		j, n := *sampleJobs()[0], bit
		fill(reflect.ValueOf([]any{
			&j.Group, &j.Park, &j.ExpiresAt, &j.PurgeAt, &j.GraceUntil, &j.StartTimeout, &j.Overrides, &j.CopiesWanted, &j.Retry, &j.RetainDead, &j.Requires,
			&j.Payload, &j.Leases, &j.Ended, &j.FailedBesideCopy, &j.LastDelay, &j.Releases, &j.Door, &j.Replays, &j.Extras, &j.Wait, &j.Rank, &j.Finished,
		}[bit]).Elem(), &n)
		if j.Extras != nil {
			j.Extras = &job.Extras{NoRetention: true}
		}
		j.CopiesWanted, j.Ranked = max(j.CopiesWanted, 1)+uint8(bit/7%2), j.Rank != 0
		list = append(list, storedJob(fmt.Sprintf("job with part %d", bit), &j))
	}
	for i, f := range []*job.Failure{{Number: 7, Attempt: 2, Type: "E", Failed: 9}, {Number: 7, ExitCode: -75}, {Number: 7, Timeout: true}, full[job.Failure]()} {
		list = append(list, stored{
			name: fmt.Sprintf("failure %d", i), value: *f,
			write: func() ([]byte, error) { return appendFailure(nil, f), nil },
			read:  func(b []byte) (any, error) { return decodeFailure(f.Number, b) },
		})
	}
	entry, session := full[job.CronEntry](), full[job.Session]()
	entry.Job, session.By.Admin = sampleJobs()[1], false // which is not stored
	for i, row := range append(sampleRows(), entry,
		full[job.Gate](), &job.Gate{Queue: "q", Group: "g", Served: 1}, full[job.Holder](), session, full[job.Receipt](), full[job.Lock](),
		full[job.AffinityTag](), full[job.Reserve](), full[job.Mark](), full[job.Audit](), full[job.CronGroup](), full[job.Throttle](), full[job.DoorSetting](),
		&job.Budget{Name: "b", Strategy: job.TimeBased, Allocation: 5, Duration: job.Minute, Burst: 9, Created: 1, Updated: 2}, full[job.Cursor](),
	) {
		if e, ok := row.(*job.CronEntry); ok { // its job has no id of its own
			j := *e.Job
			if j.Payload == j.ID {
				j.Payload = job.ID{}
			}
			j.ID, e.Job = job.ID{}, &j
		}
		list = append(list, storedRow(fmt.Sprintf("row %d of table %d", i, row.Table()), row))
	}
	return list
}

// TestNoLayoutChangesByOneByte pins the stored form of everything: testdata/layouts.txt
// was written by the codecs of format 2, and is on disks. A new layout gets lines of its own.
func TestNoLayoutChangesByOneByte(t *testing.T) {
	file, err := os.ReadFile("testdata/layouts.txt")
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]string{}
	for line := range strings.Lines(string(file)) {
		name, bytes, _ := strings.Cut(strings.TrimSpace(line), ": ")
		pinned[name] = bytes
	}
	tables := map[job.Table]bool{}
	for _, s := range everyLayout() {
		now, err := s.write()
		if err != nil || hex.EncodeToString(now) != pinned[s.name] {
			t.Errorf("%s is now stored as\n%s: %x\nand not as\n%s, %v", s.name, s.name, now, pinned[s.name], err)
			continue
		}
		got, err := s.read(now)
		if err != nil || !reflect.DeepEqual(got, s.value) {
			t.Errorf("%s\n%+v\nwas read as\n%+v, %v", s.name, s.value, got, err)
		}
		for cut := range now {
			if _, err := s.read(now[:cut]); !s.anyEnd && job.KindOf(err) != job.Corrupt {
				t.Errorf("%s, cut to %d of %d bytes: %v", s.name, cut, len(now), err)
			}
		}
		if _, err := s.read(append(slices.Clone(now), 0)); !s.anyEnd && job.KindOf(err) != job.Corrupt {
			t.Errorf("%s with a byte behind it: %v", s.name, err)
		}
		if row, ok := s.value.(job.Row); ok {
			tables[row.Table()] = true
		}
		delete(pinned, s.name)
	}
	if len(tables) != int(job.Tables) || len(pinned) > 0 {
		t.Errorf("rows of %d tables out of %d are pinned, and nothing is stored as %v", len(tables), job.Tables, pinned)
	}
}
