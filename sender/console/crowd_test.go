package console_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// crowdNames are customers of the pictures.
var crowdNames = strings.Fields(`acme_logistics borealis_health cobalt_retail dune_travel ember_foods fjord_energy granite_insurance harbour_hotels iris_analytics juniper_bank
	kestrel_air lumen_education meadow_dairy nimbus_cloud oakwood_schools pelican_post quarry_works riverbend_clinics saffron_market tundra_outdoor`)

// crowd adds customers whose endpoints do in every way, and a day of events.
func (b *bed) crowd() {
	t, ctx := b.t, b.t.Context()
	kinds := []string{"hooks", "api", "flaky", "events", "down", "in", "gone", "erp", "app", "moved"}
	var ids []string
	for i, name := range crowdNames {
		owner := "sub_" + name
		_, _, err := b.reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: owner})
		require.NoError(t, err)
		kind, asked := kinds[i%len(kinds)], []string{"invoice.*"}
		if i%13 == 12 {
			asked = []string{"never.*"} // it stays new
		}
		s, err := b.reg.Subscribe(ctx, sender.NewSubscription{Subscriber: owner, URL: fmt.Sprintf("https://%s.%s.example/webhooks/v%d", kind, strings.ReplaceAll(name, "_", "-"), i%3+1), EventTypes: asked})
		require.NoError(t, err)
		ids = append(ids, s.ID)
	}
	for i := range 3 {
		b.publish(fmt.Sprint("inv_87", 42000+i))
	}
	b.run()
	b.pass(80 * time.Hour) // past the horizon: the next attempts are the last ones
	b.run()
	for i := range 14 {
		b.publish(fmt.Sprint("inv_88", 42000+i))
		if i%3 == 0 {
			b.publish(fmt.Sprint("inv_89", 42000+i))
		}
		b.run()
		b.pass(85 * time.Minute)
	}
	require.NoError(t, b.reg.Pause(ctx, ids[7]))
	require.NoError(t, b.reg.Disable(ctx, ids[4], "it was down for too long"))
	for range 3 {
		b.publish("inv_9000001")
	}
	b.run()
}
