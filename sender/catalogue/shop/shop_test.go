package shop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/catalogue"
	"github.com/surehook/surehook/sender/catalogue/shop"
)

// New checks the examples against the converters.
func TestShop(t *testing.T) {
	c, err := shop.New()
	require.NoError(t, err)
	require.Len(t, c.Types(), 50)
	require.Equal(t, []string{shop.Second, shop.First}, c.Dates())
	for _, one := range c.Types() {
		require.Len(t, one.Versions, 2)
		require.NotEmpty(t, one.Description)
	}
	version, data, err := c.Convert("invoice.paid", shop.Second, shop.First, []byte(`{"id":"in_9","total":{"amount":9007199254740993,"currency":"USD"},"customer":{"id":"cus_9"},"created_at":"2026-01-02T15:04:05.9Z","updated_at":"2026-01-02T15:04:05Z","other":[1]}`))
	require.NoError(t, err)
	require.Equal(t, shop.First, version)
	require.JSONEq(t, `{"id":"in_9","total":9007199254740993,"currency":"USD","customer":"cus_9","created_at":1767366245,"other":[1]}`, string(data))
	_, data, err = c.Convert("invoice.paid", shop.Second, shop.First, []byte(`{"total":{"amount":4200,"currency":"USD"},"tax":null,"order":null,"due_at":null,"updated_at":null}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"total":4200,"currency":"USD","tax":null,"order":null,"due_at":null}`, string(data), "what is null stays so")
	_, _, err = c.Convert("invoice.paid", shop.Second, shop.First, []byte(`{"created_at":"yesterday"}`))
	require.ErrorContains(t, err, "invoice.paid")
	doc, err := c.OpenAPI(catalogue.Info{Title: "Shop", At: shop.First})
	require.NoError(t, err)
	require.NotContains(t, string(doc), "updated_at", "the first version does not have it")
}
