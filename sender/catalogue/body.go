package catalogue

import (
	"encoding/json"
)

// The id, the time and the version that example bodies have.
const (
	exampleID   = "evt_06h0gtek9tf30mc99r8jipb6c"
	exampleTime = "2026-01-02T15:04:05Z"
)

// BodySchema is the JSON Schema of what is posted: the data with all that is around it.
func (t *Type) BodySchema(v *Version) json.RawMessage {
	var data any
	if v.Schema != nil {
		moved, err := moved(v.Schema, "#/properties/data")
		if err != nil {
			return nil
		}
		data = moved
	}
	return encoded(t.bodySchema(v, data))
}

// BodyExample is what is posted of an example.
func (t *Type) BodyExample(v *Version, e *Example) json.RawMessage {
	return encoded(members{
		{"id", exampleID},
		{"type", t.Name},
		{"occurred_at", exampleTime},
		{"object", members{{"type", t.Object}, {"id", e.ObjectID}}},
		{"version", 1},
		{"payload_version", text(v.Since)},
		{"data", raw(e.Data)},
	})
}

// encoded returns the JSON of what New has checked, so that it can be encoded.
func encoded(m members) json.RawMessage {
	b, err := encode(m)
	if err != nil {
		return nil
	}
	return b
}

func (t *Type) bodySchema(v *Version, data any) members {
	text := func(about string) members { return members{{"type", "string"}, {"description", about}} }
	required := []string{"id", "type", "occurred_at", "object", "version"}
	properties := members{
		{"id", text("The event's id: the same in each attempt.")},
		{"type", members{{"const", t.Name}}},
		{"occurred_at", members{{"type", "string"}, {"format", "date-time"}, {"description", "When it happened."}}},
		{"object", members{
			{"type", "object"},
			{"description", "What it is about."},
			{"required", []string{"type", "id"}},
			{"properties", members{{"type", members{{"const", t.Object}}}, {"id", text("Which " + t.Object + ".")}}},
		}},
		{"version", members{{"type", "integer"}, {"minimum", 1}, {"description", "It is higher with each change of the object."}}},
	}
	if v.Since != "" {
		required = append(required, "payload_version")
		properties = append(properties, member{"payload_version", members{{"const", v.Since}, {"description", "The version of the data."}}})
	}
	if t.Kind != Thin {
		required = append(required, "data")
		if data == nil {
			data = true
		}
		properties = append(properties, member{"data", data})
	}
	return members{{"type", "object"}, {"required", required}, {"properties", properties}}
}
