package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Convert makes data that was published in the version from into what a subscription gets
// that is pinned to a date, and returns its version. It goes down alone: data that is not
// newer than what was asked for stays as it is, and so does data of a type that the catalogue
// does not have. An error says that from is no version of the type, or that a converter has
// failed.
func (c *Catalogue) Convert(eventType, from, date string, data json.RawMessage) (version string, converted json.RawMessage, err error) {
	i, ok := c.by[eventType]
	if !ok {
		return from, data, nil
	}
	t := &c.types[i]
	to := t.at(date)
	if from <= t.Versions[to].Since {
		return from, data, nil
	}
	at := t.at(from)
	if t.Versions[at].Since != from {
		return "", nil, fmt.Errorf("sender/catalogue: type %q has no version %q: a process with a newer catalogue must deliver it", eventType, from)
	}
	converted, failed, err := t.convert(data, at, to)
	if errors.Is(err, errPanicked) || errors.Is(err, errNoJSON) {
		return "", nil, fmt.Errorf("sender/catalogue: type %q: Down of version %q: %w: try it with the event's data", eventType, t.Versions[failed].Since, err)
	}
	if err != nil {
		return "", nil, fmt.Errorf("sender/catalogue: type %q: Down of version %q has failed with a %T: try it with the event's data", eventType, t.Versions[failed].Since, err)
	}
	return t.Versions[to].Since, converted, nil
}
