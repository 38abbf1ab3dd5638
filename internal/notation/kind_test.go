package notation

import "testing"

func TestSizes(t *testing.T) {
	for text, want := range map[string]struct {
		bytes int64
		shown string
	}{
		"0": {0, "0"}, "1": {1, "1B"}, "1024": {1024, "1KiB"}, "1000 B": {1000, "1KB"}, "64MiB": {64 << 20, "64MiB"},
		"256MB": {256_000_000, "256MB"}, "256 mb": {256_000_000, "256MB"}, "1.5GiB": {3 << 29, "1536MiB"},
		"0.3KB": {300, "300B"}, "2TB": {2e12, "2TB"}, "1024TiB": {1 << 50, "1024TiB"}, "1000KiB": {1_024_000, "1000KiB"},
	} {
		n, err := ParseSize(text)
		if err != nil || n != want.bytes || ShowSize(n) != want.shown {
			t.Errorf("%q is %d (%s), %v", text, n, ShowSize(n), err)
		}
		if again, err := ParseSize(ShowSize(n)); again != n || err != nil {
			t.Errorf("%s is read back as %d, %v", ShowSize(n), again, err)
		}
	}
	for _, text := range []string{"", "MB", "-1", "1e3", "1M", "1 MiB/s", "0x10", "1.5", "0.0001KiB", "1..2MB", "2048TiB", "9e99GB", "NaN", "Inf", "1iB"} {
		if n, err := ParseSize(text); err == nil {
			t.Errorf("%q is read as %d", text, n)
		}
	}
}
