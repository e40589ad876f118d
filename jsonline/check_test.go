package jsonline_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/busdk/bus-agent/jsonline"
)

func ExampleCheckNames() {
	fmt.Println(jsonline.CheckNames([]byte(`{"a": [{"b": 1, "b": 2}]}`), nil))
	// Output: member "b" is repeated
}

func TestCheckNames(t *testing.T) {
	t.Parallel()
	refuse := func(name string) error {
		if name == "no" {
			return errors.New("refused")
		}
		return nil
	}
	for text, want := range map[string]string{
		`{"a":{"b":1},"b":{"a":1,"c":[{"a":1},{"a":1}]}}`: "<nil>",
		`[1,"x",null,true,{}]`:                            "<nil>",
		`null`:                                            "<nil>",
		`{"a":1,"A":2}`:                                   "<nil>",
		`{"a":1,"\u0061":2}`:                              `member "a" is repeated`,
		`{"a":{"x":[1,2]},"b":"{","a":2}`:                 `member "a" is repeated`,
		`[[{"x":{"k":1,"k":2}}]]`:                         `member "k" is repeated`,
		"{\"\xff\":1,\"\xfe\":2}":                         "member \"\ufffd\" is repeated",
		`{"a":[{"no":1}]}`:                                "refused",
		`{"a":`:                                           "<nil>",
		strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000): "<nil>",
	} {
		if got := fmt.Sprint(jsonline.CheckNames([]byte(text), refuse)); got != want {
			t.Errorf("%.60s: %s, want %s", text, got, want)
		}
	}
}
