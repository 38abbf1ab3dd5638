package job

import "testing"

func TestOnDepFailIsReadByName(t *testing.T) {
	for text, want := range map[string]OnDepFail{"": DepFail, "fail": DepFail, "run": DepRun} {
		if got, err := ParseOnDepFail(text); err != nil || got != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	if _, err := ParseOnDepFail("skip"); fieldOf(err) != "on_dep_fail" {
		t.Error(err)
	}
}
