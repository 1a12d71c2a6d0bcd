package receiver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/dedup"
)

const goodBody = `{"id":"evt_1","type":"subscriber.updated","occurred_at":"2026-01-02T03:04:05Z","object":{"type":"subscriber","id":"sub_1"},"version":7}`

func TestDecodeAccepts(t *testing.T) {
	obj := dedup.Object{Type: "subscriber", ID: "sub_1"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		body string
		want Event
	}{
		{goodBody, Event{ID: "evt_1", Type: "subscriber.updated", Object: obj, Version: 7, OccurredAt: at}},
		{"\n\t {\"id\" :\r\"evt_1\" , \"type\":\"a\",\"object\": { \"type\":\"subscriber\" ,\"id\":\"sub_1\" } ,\"version\" : 9007199254740991 } \n",
			Event{ID: "evt_1", Type: "a", Object: obj, Version: 1<<53 - 1}},
		{`{"\u0069d":"evt\u005f1","type":"a","object":{"type":"subscriber","id":"sub_1"},"version":1}`,
			Event{ID: "evt_1", Type: "a", Object: obj, Version: 1}},
		{`{"id":"e","type":"a","object":{"type":"t","id":"\ud83d\ude00\"\\é","more":[{"id":1},"}"]},"version":1,"data":{"id":"x","id":"y"},"more":[],"":null,"x y":-1.5e3}`,
			Event{ID: "e", Type: "a", Object: dedup.Object{Type: "t", ID: "😀\"\\é"}, Version: 1, Data: json.RawMessage(`{"id":"x","id":"y"}`)}},
		{`{"data":null,"id":"e","type":"a","object":{"id":"i","type":"t"},"version":1}`,
			Event{ID: "e", Type: "a", Object: dedup.Object{Type: "t", ID: "i"}, Version: 1, Data: json.RawMessage("null")}},
		{`{"payload_version":"2026-11-25","id":"e","type":"a","object":{"id":"i","type":"t"},"version":1}`,
			Event{ID: "e", Type: "a", Object: dedup.Object{Type: "t", ID: "i"}, Version: 1, PayloadVersion: "2026-11-25"}},
		{`{"data":7 ,"id":"e","type":"a","object":{"id":"i","type":"t"},"version":1}`,
			Event{ID: "e", Type: "a", Object: dedup.Object{Type: "t", ID: "i"}, Version: 1, Data: json.RawMessage("7")}},
	} {
		got, err := decode([]byte(c.body))
		require.NoError(t, err, c.body)
		c.want.Body = []byte(c.body)
		require.Equal(t, c.want, got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	with := func(old, new string) string {
		body := strings.Replace(goodBody, old, new, 1)
		if body == goodBody {
			panic(old)
		}
		return body
	}
	for _, c := range []struct{ body, want string }{
		{"", "not one JSON value"},
		{with(`"version"`, `"payload_version":7,"version"`), "payload_version"},
		{"{}", "missing: id, type, object, version"},
		{"null", "not a JSON object"},
		{"[]", "not a JSON object"},
		{goodBody + goodBody, "not one JSON value"},
		{goodBody + "x", "not one JSON value"},
		{"\ufeff" + goodBody, "not one JSON value"},
		{goodBody[:len(goodBody)-1] + ",}", "not one JSON value"},
		{with(`"sub_1"`, "\"\xff\""), "UTF-8"},
		{with(`"version":7`, "\"version\":7,\"data\":\"\xff\""), "UTF-8"},

		{with(`{"id"`, `{"id":"evt_0","id"`), "id appears twice"},
		{with(`{"id"`, `{"\u0069d":"evt_0","id"`), "id appears twice"},
		{with(`"version":7`, `"version":7,"version":7`), "version appears twice"},
		{with(`"version":7`, `"version":7,"data":1,"data":1`), "data appears twice"},
		{with(`"version":7`, `"version":7,"more":1,"more":1`), "a field appears twice"},
		{with(`"version":7`, `"version":7,"more":1,"\u006dore":1`), "a field appears twice"},
		{with(`"type":"subscriber"`, `"type":"subscriber","type":"subscriber"`), "object: the field type appears twice"},
		{with(`"type":"subscriber"`, `"x":1,"type":"subscriber","x":1`), "object: a field appears twice"},

		{with(`{"id"`, `{"ID":"evt_0","id"`), "id in another case"},
		{with(`{"id"`, `{"Id"`), "id in another case"},
		{with(`"version"`, `"Version"`), "version in another case"},
		{with(`"version"`, `"verſion"`), "version in another case"}, // U+017F folds to s
		{with(`"sub_1"}`, `"sub_1","Id":"sub_2"}`), "object: a field is named like id in another case"},

		{with(`:7`, `:0`), "version"},
		{with(`:7`, `:-7`), "version"},
		{with(`:7`, `:7.0`), "version"},
		{with(`:7`, `:7e0`), "version"},
		{with(`:7`, `:"7"`), "version"},
		{with(`:7`, `:null`), "version"},
		{with(`:7`, `:[7]`), "version"},
		{with(`:7`, `:9007199254740992`), "version"},
		{with(`:7`, `:99999999999999999999`), "version"},
		{with(`:7`, `:18446744073709551623`), "version"}, // 2^64 + 7

		{with(`"evt_1"`, `1`), "id: it is not a JSON string"},
		{with(`"evt_1"`, `null`), "id: it is not a JSON string"},
		{with(`"evt_1"`, `""`), "id: event id is empty"},
		{with(`"evt_1"`, `"evt.1"`), "id: event id"},
		{with(`"evt_1"`, `"evt\u00001"`), "id: event id"},
		{with(`"evt_1"`, `"`+strings.Repeat("x", 129)+`"`), "id: event id"},
		{with(`"subscriber.updated"`, `"a..b"`), "type: event type"},
		{with(`"subscriber.updated"`, `{}`), "type: it is not a JSON string"},
		{with(`"2026-01-02T03:04:05Z"`, `"yesterday"`), "occurred_at"},
		{with(`"2026-01-02T03:04:05Z"`, `1767323045`), "occurred_at"},
		{with(`{"type":"subscriber","id":"sub_1"}`, `"sub_1"`), "object: it is not a JSON object"},
		{with(`{"type":"subscriber","id":"sub_1"}`, `null`), "object: it is not a JSON object"},
		{with(`"type":"subscriber",`, ``), "object: missing: type"},
		{with(`,"id":"sub_1"`, ``), "object: missing: id"},
		{with(`"sub_1"`, `"\u0000"`), "object: object id"},
		{with(`"sub_1"`, `"\ud800"`), "surrogate"},
		{with(`"sub_1"`, `"\ud800\u0041"`), "surrogate"},
		{with(`"sub_1"`, `"\ud800x\udc00"`), "surrogate"},
		{with(`"sub_1"`, `"\\\udc00"`), "surrogate"},
		{with(`"version":7`, `"version":7,"\udc00":1`), "surrogate"},
	} {
		_, err := decode([]byte(c.body))
		require.ErrorContains(t, err, c.want, c.body)
		require.NotContains(t, err.Error(), "evt_")
	}
}

// An accepted body means the same to a reader that knows nothing of this one.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(goodBody))
	f.Add([]byte(`{"\u0069d":"e","type":"a","object":{"id":"\ud83d\ude00","type":"t","x":[{"}":"\\"}]},"version":9007199254740991,"data":{"id":"x"}}`))
	f.Add([]byte(`{"ID":"a","id":"b","object":{"id":"\ud800"},"version":1e3}`))
	f.Add([]byte(`{"id":"e","id":"f"}`))
	f.Add([]byte(`{"id":"e","type":"a","object":{"id":"i","type":"t","x":1e999},"version":1}`)) // no float64
	f.Fuzz(func(t *testing.T, body []byte) {
		ev, err := decode(body)
		if err != nil {
			return
		}
		var other map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(body, &other))
		var object map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(other["object"], &object))
		str := func(raw json.RawMessage) (s string) {
			require.NoError(t, json.Unmarshal(raw, &s))
			return s
		}
		require.Equal(t, ev.ID, str(other["id"]))
		require.Equal(t, ev.Type, str(other["type"]))
		require.Equal(t, ev.Object, dedup.Object{Type: str(object["type"]), ID: str(object["id"])})
		require.Equal(t, fmt.Sprint(ev.Version), string(other["version"]))
		require.Equal(t, string(ev.Data), string(other["data"]))

		again, err := json.Marshal(map[string]any{
			"id": ev.ID, "type": ev.Type, "version": ev.Version,
			"object": map[string]string{"type": ev.Object.Type, "id": ev.Object.ID},
		})
		require.NoError(t, err)
		second, err := decode(again)
		require.NoError(t, err)
		require.Equal(t, ev.ID, second.ID)
		require.Equal(t, ev.Version, second.Version)
		require.Equal(t, ev.Object, second.Object)
	})
}

func BenchmarkDecode(b *testing.B) {
	body := []byte(goodBody[:len(goodBody)-1] + `,"data":{"text":"`)
	body = append(body, strings.Repeat("x", 1024-len(body)-3)+`"}}`...)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := decode(body); err != nil {
			b.Fatal(err)
		}
	}
}
