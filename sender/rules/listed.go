package rules

import (
	"strings"

	"github.com/surehook/surehook/sender"
)

// Listed tells whether the conditions of a query hold for a subscription that is not
// deleted.
func Listed(q *sender.SubscriptionQuery, s sender.Subscription) bool {
	return (q.Subscriber == "" || q.Subscriber == s.Subscriber) && (q.Status == "" || q.Status == s.Status) && (q.Implicit || !s.Implicit) &&
		(q.ID == "" || q.ID == s.ID) && (q.URL == "" || strings.Contains(strings.ToLower(s.URL), strings.ToLower(q.URL))) &&
		(!q.Failing || s.Status == sender.SubscriptionActive && !s.Health.FailingSince.IsZero())
}
