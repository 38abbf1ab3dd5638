package job

import "testing"

func TestASmallResultIsACopyThatIsNeverNil(t *testing.T) {
	body := []byte("made")
	r := InlineResult(body)
	clear(body)
	if string(r.Bytes) != "made" || r.Size != 4 || !r.Ref.IsZero() {
		t.Errorf("%+v", r)
	}
	for _, body := range [][]byte{nil, {}} {
		if r := InlineResult(body); r.Bytes == nil || r.Size != 0 {
			t.Errorf("of %v: %+v", body, r)
		}
	}
}
