package catalogue

import (
	"bytes"
	"encoding/json"
)

// members are an object of JSON whose names stay in their order.
type members []member

type member struct {
	name  string
	value any
}

// MarshalJSON encodes the members in their order. Those whose value is nil are left out.
func (m members) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for _, one := range m {
		if one.value == nil {
			continue
		}
		name, err := encode(one.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(one.value)
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

// encode leaves <, > and & as they are: people read this.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// text is a member's value, or nil for none.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// raw is likewise for JSON.
func raw(data json.RawMessage) any {
	if data == nil {
		return nil
	}
	return data
}
