package sns_test

import (
	"fmt"

	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/sns"
)

func ExampleNew() {
	scheme, err := sns.New([]string{"arn:aws:sns:eu-west-1:123456789012:orders"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = signing.NewVerifier(nil, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}})
	fmt.Println(scheme.Name(), err)
	_, err = sns.New([]string{"orders"}, nil)
	fmt.Println(err)
	// Output:
	// sns <nil>
	// sns: "orders" is no topic's ARN: it is like arn:aws:sns:eu-west-1:123456789012:orders
}
