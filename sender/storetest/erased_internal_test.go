package storetest

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/memory"
)

// If a field is left out, it is nil in the suite, which then skips what needs it.
func TestErasedHarnessHasAllFields(t *testing.T) {
	store, err := memory.New(nil)
	require.NoError(t, err)
	h := Harness[*memory.Tx]{Store: store}
	for _, f := range reflect.ValueOf(&h).Elem().Fields() {
		switch f.Kind() {
		case reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { return nil }))
		case reflect.Bool:
			f.SetBool(true)
		}
	}
	for field, f := range reflect.ValueOf(erasedHarness(h)).Fields() {
		require.False(t, f.IsZero(), field.Name)
	}
}
