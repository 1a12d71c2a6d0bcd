package main

import (
	"encoding/json"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// Posted is the body of what is posted to a callback URL.
type Posted struct {
	ID         string    `json:"id" doc:"Every repetition has the same: deduplicate by it."`
	Type       string    `json:"type" example:"subscriber.updated" doc:"Words joined by full stops."`
	OccurredAt time.Time `json:"occurred_at" doc:"When it happened."`
	Object     Object    `json:"object" doc:"What the event is about."`
	Version    int64     `json:"version" minimum:"1" maximum:"9007199254740991" doc:"It is higher with each change of the object."`

	PayloadVersion string          `json:"payload_version,omitempty" doc:"In which version of its type the data is: the date since which that is there. Left out where there is one version."`
	Data           json.RawMessage `json:"data,omitempty" doc:"What the producer has added. Without it the event is thin: read the object's state."`
}

// describePosted adds what is posted to callback URLs to the OpenAPI document.
func (s *server) describePosted() {
	api := s.api.OpenAPI()
	text := func(description string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Description: description}
	}
	whole := func(description string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeInteger, Description: description}
	}
	var headers []*huma.Param
	for _, h := range []struct {
		name   string
		schema *huma.Schema
	}{
		{"Webhook-Id", text("The event's id, as in the body.")},
		{"Webhook-Timestamp", whole("Seconds since the epoch, of this attempt. Refuse what is more than 300 s away from your clock.")},
		{"Webhook-Hmac-Sha256", text("Lowercase hex HMAC-SHA256 of TIMESTAMP.BODY. The key is the secret's text as it is shown, whsec_ included. During a rotation it is made with one secret alone.")},
		{"Webhook-Signature", text("Standard Webhooks 1.0.0: v1,BASE64 of the HMAC-SHA256 of ID.TIMESTAMP.BODY. The key is what follows whsec_, decoded from base64. During a rotation there are several, separated by spaces: one must match.")},
		{"Webhook-Attempt", whole("1, 2, 3 … It is not signed, and for information only.")},
	} {
		headers = append(headers, &huma.Param{Name: h.name, In: "header", Required: true, Schema: h.schema})
	}
	api.Webhooks = map[string]*huma.PathItem{"event": {Post: &huma.Operation{
		OperationID: "receive-event", Method: http.MethodPost, Summary: "An event is posted to a callback URL", Tags: []string{"Events"}, Parameters: headers,
		Description: "It goes to the callback URLs whose subscriptions ask for its type, at least once, and not always in order. Verify the signature of the raw bytes before anything else.",
		RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
			// Within the description: generators of clients drop a component to which no call
			// refers.
			"application/json": {Schema: huma.SchemaFromType(api.Components.Schemas, reflect.TypeFor[Posted]())},
		}},
		Responses: map[string]*huma.Response{
			"2XX":     {Description: "It was taken. Answer after your own commit, within 10 seconds."},
			"default": {Description: "Everything else, redirects included, is a failed attempt. It is made again later, and Retry-After delays it."},
		},
	}}}
}
