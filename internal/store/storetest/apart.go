package storetest

import (
	"fmt"
	"reflect"
)

// apart says in which place two values differ first, and how; "" = nowhere.
func apart(a, b any) string { return apartAt("", reflect.ValueOf(a), reflect.ValueOf(b)) }

func apartAt(place string, a, b reflect.Value) string {
	if !a.IsValid() || !b.IsValid() {
		if a.IsValid() == b.IsValid() {
			return ""
		}
		return fmt.Sprintf("%s: %s, %s", place, text(a), text(b))
	}
	differ := fmt.Sprintf("%s: %s, %s", place, text(a), text(b))
	if a.Type() != b.Type() {
		return differ
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			break
		}
		return apartAt(place, a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if s := apartAt(place+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i)); s != "" {
				return s
			}
		}
		return ""
	case reflect.Slice:
		for i := range min(a.Len(), b.Len()) {
			if s := apartAt(fmt.Sprintf("%s[%d]", place, i), a.Index(i), b.Index(i)); s != "" {
				return s
			}
		}
		if a.Len() == b.Len() && a.IsNil() == b.IsNil() {
			return ""
		}
		return fmt.Sprintf("%s has %d items, and %d", place, a.Len(), b.Len())
	}
	if text(a) == text(b) {
		return ""
	}
	return differ
}

func text(v reflect.Value) string { return fmt.Sprintf("%+v", v) }
