package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// The feed has all that the body has that is posted, and the OpenAPI document describes both
// alike.
func TestAnEventHasAllOfItsBody(t *testing.T) {
	t.Parallel()
	body := `{"id":"evt_1","type":"order.paid","occurred_at":"2026-01-02T15:04:05.123456Z","object":{"type":"order","id":"1"},"version":9007199254740991,"payload_version":"2026-11-25","data":{"n":1.50}}`
	e, err := viewEvent(&sender.StoredEvent{Body: []byte(body)})
	require.NoError(t, err)
	shown, err := json.Marshal(e)
	require.NoError(t, err)
	require.Equal(t, body, string(shown))

	fields := func(of reflect.Type) (names []string) {
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
		return names
	}
	require.Equal(t, fields(reflect.TypeFor[Posted]()), fields(reflect.TypeFor[Event]())[:7], "and redacted, which is never posted")
}
