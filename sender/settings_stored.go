package sender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
)

// storedSettings is how Settings are kept: an object with a member for each field.
type storedSettings Settings

// ReadSettings returns settings as json.Marshal has encoded them. Stores call it with the
// bytes of a row, which another release may have written, or a hand. Members that this
// release does not know are kept, so that it does not lose them when it writes the
// settings back. Settings that cannot be read are empty, except for Unreadable and Order:
// nothing is posted with them, nobody else's deliveries wait for them, and what is expanded
// meanwhile is in OrderObject, from which each order can be made again.
func ReadSettings(stored []byte) Settings {
	var s storedSettings
	var all map[string]json.RawMessage
	err := json.Unmarshal(stored, &s)
	if err == nil {
		err = json.Unmarshal(stored, &all)
	}
	if err != nil {
		return Settings{Order: OrderObject, unread: bytes.Clone(stored), unreadable: fmt.Errorf("sender: the stored settings cannot be read by this release: give the subscription new ones, or run the release that wrote them: %w", err)}
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return settingsFields[strings.ToLower(name)] })
	if len(all) > 0 {
		s.unknown = all
	}
	return Settings(s)
}

// settingsFields are the names of the members that are known, in lower case: decoding
// does not tell cases apart.
var settingsFields = func() map[string]bool {
	known := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		if f.IsExported() {
			known[strings.ToLower(f.Name)] = true
		}
	}
	return known
}()

// Unreadable says why the settings that are stored cannot be read by this release, or
// is nil. Then no delivery of the subscription is attempted: each is put off by a
// minute, and the log says so. Registry.Update with SubscriptionChange.Settings
// replaces them.
func (s Settings) Unreadable() error { return s.unreadable }

// MarshalJSON encodes settings as stores keep them, with what was in them that this
// release does not know.
func (s Settings) MarshalJSON() ([]byte, error) {
	if s.unreadable != nil && json.Valid(s.unread) {
		return s.unread, nil
	}
	known, err := json.Marshal(storedSettings(s))
	if err != nil || len(s.unknown) == 0 {
		return known, err
	}
	unknown, err := json.Marshal(s.unknown)
	if err != nil {
		return nil, err
	}
	return append(append(known[:len(known)-1], ','), unknown[1:]...), nil
}
