package fluentconf

import (
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "512": 512, "1k": 1000, "1K": 1000, "1kb": 1000, "5m": 5_000_000, "5MB": 5_000_000, "32g": 32_000_000_000, "32Gb": 32_000_000_000,
		"1.5M": 1_500_000, "0.3k": 300, "4.35M": 4_350_000, "false": 0, "False": 0, "off": 0, "1000000G": 1e15,
		"": -1, "aabb": -1, "1kX": -1, "k": -1, "b": -1, "10b": -1, "1kk": -1, "-1": -1, "1.2.3": -1, "1e3": -1, "1 k": -1, "0x1": -1, "inf": -1, "true": -1,
		"1000001G": -1, "99999999999999999999999": -1, ".": -1, "1t": -1, "000000000000000000000000000000000000001k": 1000, "00000000000000000000000000000000000000001": -1, "1kB ": -1, "1bk": -1,
	} {
		got, err := ParseSize(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d (%v), want %d", text, got, err, want)
		}
	}
}

func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "5": 5 * time.Second, "5s": 5 * time.Second, "0.5": time.Second / 2, "1.5s": 1500 * time.Millisecond, "2m": 2 * time.Minute, "3H": 3 * time.Hour,
		"1d": 24 * time.Hour, "1.5h": 90 * time.Minute, "0.000000001": 1, "36500d": spanMax, "36500.1d": -1,
		"": -1, "s": -1, "abc": -1, "5x": -1, "500ms": -1, "-1": -1, "1m30s": -1, "1e3": -1, "99999999d": -1, "5 s": -1,
	} {
		got, err := ParseSpan(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
}

func TestFlags(t *testing.T) {
	for text, want := range map[string]string{
		"true": "on", "On": "on", "YES": "on", "false": "off", "off": "off", "No": "off", "": "none", "1": "none", "enabled": "none", "tru": "none",
	} {
		got := "off"
		if v, err := ParseFlag(text); err != nil {
			got = "none"
		} else if v {
			got = "on"
		}
		if got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
