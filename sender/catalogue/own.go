package catalogue

import "encoding/json"

// Own returns the types that the library itself publishes and that customers can ask for, to
// be added to a service's own: the ends of jobs, and notices about endpoints. Checks know
// them anyway.
func Own() []Type {
	notice := func(name, object, description, example string) Type {
		return Type{
			Name: name, Group: "Webhooks", Object: object, Kind: Fact, Description: description,
			Versions: []Version{{
				Schema: json.RawMessage(`{"type":"object","required":["notice_id","detail"],"properties":{` +
					`"notice_id":{"type":"string","description":"The notice, which is acknowledged by this id"},` +
					`"subscription_id":{"type":"string","description":"Which endpoint"},` +
					`"delivery_id":{"type":"string","description":"Which delivery"},` +
					`"percent":{"type":"integer","description":"How much of the time until it is disabled has passed"},` +
					`"detail":{"type":"string","description":"Why, in words"}}}`),
				Examples: []Example{{ObjectID: exampleObject[object], Data: json.RawMessage(example)}},
			}},
		}
	}
	return []Type{
		{
			Name: "job.completed", Group: "Jobs", Object: "job", Kind: Fact, Description: "A job has succeeded, failed or been cancelled.",
			Versions: []Version{{
				Schema:   json.RawMessage(`{"type":"object","required":["status"],"properties":{"status":{"type":"string","enum":["succeeded","failed","cancelled"]}}}`),
				Examples: []Example{{ObjectID: "job_06h0gtelnlptul63ff7tq7rst", Data: json.RawMessage(`{"status":"succeeded"}`)}},
			}},
		},
		notice("delivery.dead_lettered", "surehook.delivery", "A delivery is not attempted any more. It is kept, and can be sent again.",
			`{"notice_id":"ntc_06h0gtemohs33breifag1nrvs","subscription_id":"wsub_06h0gtei5ps76rvbekl4rsvik","delivery_id":"dlv_06h0gtek9tf30mc99r8jipb6c_1","detail":"6 attempts without a success, the last one: answered with 503"}`),
		notice("subscription.failing", "surehook.subscription", "An endpoint fails all the time, and is on its way to being disabled.",
			`{"notice_id":"ntc_06h0gtemohs33breifag1nrvt","subscription_id":"wsub_06h0gtei5ps76rvbekl4rsvik","percent":50,"detail":"it has been failing for 60 h"}`),
		notice("subscription.disabled", "surehook.subscription", "An endpoint was disabled. What comes for it is held.",
			`{"notice_id":"ntc_06h0gtemohs33breifag1nrvu","subscription_id":"wsub_06h0gtei5ps76rvbekl4rsvik","detail":"it has been failing for 120 h"}`),
	}
}

var exampleObject = map[string]string{"surehook.delivery": "dlv_06h0gtek9tf30mc99r8jipb6c_1", "surehook.subscription": "wsub_06h0gtei5ps76rvbekl4rsvik"}
