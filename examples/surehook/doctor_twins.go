package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/surehook/surehook/sender"
)

// checkTwins looks for subscriptions that are there twice, as a program makes them that calls
// Subscribe at each start without an id: its customer gets each event as often.
func checkTwins(ctx context.Context, b *stored, found *findings) {
	first := map[string]string{} // by what a subscription asks for, its id
	var pairs []twins
	seen, cursor := 0, ""
	for seen < looked {
		page, next, err := b.history.Subscriptions(ctx, sender.SubscriptionQuery{Cursor: cursor, Limit: 200})
		if err != nil {
			found.failed("twins", err)
			return
		}
		pairs = append(pairs, pair(first, page)...)
		seen += len(page)
		if next == "" {
			break
		}
		cursor = next
	}
	judgeTwins(pairs, found)
}

// twins are the ids of two subscriptions that ask for the same.
type twins struct{ older, younger string }

// pair finds the subscriptions of a page that ask for what one before does.
func pair(first map[string]string, page []sender.Subscription) (pairs []twins) {
	for _, s := range page {
		if s.Status != sender.SubscriptionActive { // it gets nothing now
			continue
		}
		types := slices.Sorted(slices.Values(s.EventTypes))
		asks := strings.Join(append(types, s.Subscriber, s.URL, s.Filter.String(), s.Settings.PayloadVersion), "\x00")
		if older, there := first[asks]; there {
			pairs = append(pairs, twins{older, s.ID})
		} else {
			first[asks] = s.ID
		}
	}
	return pairs
}

func judgeTwins(pairs []twins, found *findings) {
	if len(pairs) == 0 {
		return
	}
	number := counted(int64(len(pairs)), "subscription asks for the same as an older one of its subscriber, and gets", "subscriptions ask for the same as an older one of their subscriber, and get")
	found.add("twins", warn, fmt.Sprintf("%s each event once more, such as %s beside %s", number, pairs[0].younger, pairs[0].older),
		"Registry.Unsubscribe ends one; a Subscribe that is called at each start needs a NewSubscription.ID")
}
