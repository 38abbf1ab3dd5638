package job

import (
	"reflect"
	"testing"
)

func TestExtrasAreNilOnlyWhereNoFieldIsSet(t *testing.T) {
	if x := (Extras{}).orNil(); x != nil {
		t.Errorf("nothing is %+v", x)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Extras]()) {
		var x Extras
		switch v := reflect.ValueOf(&x).Elem().FieldByIndex(f.Index); v.Kind() {
		case reflect.Pointer:
			v.Set(reflect.New(f.Type.Elem()))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(f.Type, 1, 1))
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		default:
			t.Fatalf("this test must learn to set %s, which is a %s", f.Name, f.Type)
		}
		if got := x.orNil(); got == nil || !reflect.DeepEqual(*got, x) {
			t.Errorf("with %s alone: %+v", f.Name, got)
		}
	}
}
