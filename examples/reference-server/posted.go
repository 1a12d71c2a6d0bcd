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
	s.api.OpenAPI().Webhooks = map[string]*huma.PathItem{"event": {Post: s.postedEvent()}, "challenge": {Post: s.postedChallenge()}}
}

func (s *server) postedEvent() *huma.Operation {
	return &huma.Operation{
		OperationID: "receive-event", Method: http.MethodPost, Summary: "An event is posted to a callback URL", Tags: []string{"Events"}, Parameters: postedHeaders(),
		Description: "It goes to the callback URLs whose subscriptions ask for its type, at least once, and not always in order. Verify the signature of the raw bytes before anything else.",
		RequestBody: posted(s.postedBody()),
		Responses: map[string]*huma.Response{
			"2XX":     {Description: "It was taken. Answer after your own commit, within 10 seconds."},
			"default": {Description: "Everything else, redirects included, is a failed attempt. It is made again later, and Retry-After delays it."},
		},
	}
}

// postedChallenge is what sender/challenge posts, and how it is answered.
func (s *server) postedChallenge() *huma.Operation {
	token := func() *huma.Schema {
		return &huma.Schema{
			Type: huma.TypeObject, Required: []string{"token"},
			Properties: map[string]*huma.Schema{"token": {Type: huma.TypeString, Description: "The challenge's token."}},
		}
	}
	body := s.postedBody()
	delete(body.Properties, "payload_version")
	body.Properties["type"] = &huma.Schema{Type: huma.TypeString, Enum: []any{"webhook.challenge"}, Description: "It tells a challenge from an event."}
	body.Properties["data"] = token()
	body.Properties["data"].Description = "What the answer must have."
	body.Required = append(body.Required, "data")
	return &huma.Operation{
		OperationID: "receive-challenge", Method: http.MethodPost, Summary: "A callback URL is asked for a proof before it is registered", Tags: []string{"Subscriptions"}, Parameters: postedHeaders(),
		Description: "A server that runs with -challenge posts it once, to the URL of a new subscription, a changed one, and the callback_url of a job. It is signed like an event, with the subscriber's secret: verify it first.",
		RequestBody: posted(body),
		Responses: map[string]*huma.Response{
			"2XX": {Description: "The owner of the URL wants the events: the token, in either form, in at most 1 KiB.", Content: map[string]*huma.MediaType{
				"application/json": {Schema: token(), Example: ownToken{anyChallenge}},
				"text/plain":       {Schema: &huma.Schema{Type: huma.TypeString}, Example: anyChallenge},
			}},
			"default": {Description: "Everything else, also 2xx without the token: the URL is refused with 422."},
		},
	}
}

// ownToken is the data of a challenge, and the answer to it.
type ownToken struct {
	Token string `json:"token"`
}

// postedBody is a new schema at each call. It stands within the description: generators of
// clients drop a component to which no call refers.
func (s *server) postedBody() *huma.Schema {
	return huma.SchemaFromType(s.api.OpenAPI().Components.Schemas, reflect.TypeFor[Posted]())
}

func posted(body *huma.Schema) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: body}}}
}

func postedHeaders() (headers []*huma.Param) {
	for _, h := range []struct{ name, kind, description string }{
		{"User-Agent", huma.TypeString, "surehook/ and the server's version."},
		{"Webhook-Id", huma.TypeString, "The event's id, as in the body."},
		{"Webhook-Timestamp", huma.TypeInteger, "Seconds since the epoch, of this attempt. Refuse what is more than 300 s away from your clock."},
		{"Webhook-Hmac-Sha256", huma.TypeString, "Lowercase hex HMAC-SHA256 of TIMESTAMP.BODY. The key is the secret's text as it is shown, whsec_ included. During a rotation it is made with one secret alone."},
		{"Webhook-Signature", huma.TypeString, "Standard Webhooks 1.0.0: v1,BASE64 of the HMAC-SHA256 of ID.TIMESTAMP.BODY. The key is what follows whsec_, decoded from base64. During a rotation there are several, separated by spaces: one must match."},
		{"Webhook-Attempt", huma.TypeInteger, "1, 2, 3 … It is not signed, and for information only."},
	} {
		headers = append(headers, &huma.Param{Name: h.name, In: "header", Required: true, Schema: &huma.Schema{Type: h.kind, Description: h.description}})
	}
	return headers
}
