package structured

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/busdk/bus-agent/agent"
)

// violationsOf returns those of an answer.
func violationsOf(t *testing.T, schema, answer string) Violations {
	t.Helper()
	s, err := Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Check(answer)
	var found Violations
	if err != nil && !errors.As(err, &found) {
		t.Fatalf("the error is a %T", err)
	}
	return found
}

func TestViolations(t *testing.T) {
	t.Parallel()
	const shapes = `{"$defs":{"box":{"properties":{"kind":{"const":"box"},"side":{"type":"number"}},"required":["kind","side"]}},
		"properties":{"shape":{"KEYWORD":[
			{"title":"circle","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},
			{"$ref":"#/$defs/box"},
			{"type":"null"}]}}}`
	branches := []string{`(circle: lacks the property "r"; /shape/kind: must be "circle", not "box") (#/$defs/box: /shape/side: must be a number, not the string "big") (%s/2: must be null, not an object)`}
	for name, c := range map[string]struct {
		schema, answer string
		want           Violations
	}{
		"all at once": {weather, `{"sky":1,"degrees":"x","a":2}`, Violations{
			`lacks the property "city"`, `/a: is not allowed`, `/degrees: must be an integer, not the string "x"`, `/sky: is not allowed`}},
		"of one value": {`{"minLength":3,"pattern":"^b","enum":["bbb","bcd"]}`, `"a"`, Violations{
			`must be one of "bbb", "bcd", not "a"`, `must have at least 3 characters, not 1`, `must match the pattern "^b", not the string "a"`}},
		"items in their order": {`{"items":{"type":"null"}}`, `[null,1,null,null,null,null,null,null,null,null,2]`, Violations{
			`/1: must be null, not the number 1`, `/10: must be null, not the number 2`}},
		"outer before inner": {`{"properties":{"b":{"required":["x"],"properties":{"a":{"type":"null"}}}},"required":["c"]}`, `{"b":{"a":true}}`, Violations{
			`lacks the property "c"`, `/b: lacks the property "x"`, `/b/a: must be null, not true`}},
		"one found twice": {`{"allOf":[{"type":"null"},{"type":"null"}]}`, `[]`, Violations{`must be null, not an array`}},
		"of every allOf":  {`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, Violations{`lacks the property "a"`, `lacks the property "b"`}},
		"the branches of anyOf": {strings.Replace(shapes, "KEYWORD", "anyOf", 1), `{"shape":{"kind":"box","side":"big"}}`, Violations{
			`/shape: matches no branch of anyOf ` + fmt.Sprintf(branches[0], "anyOf")}},
		"the branches of oneOf": {strings.Replace(shapes, "KEYWORD", "oneOf", 1), `{"shape":{"kind":"box","side":"big"}}`, Violations{
			`/shape: matches no branch of oneOf ` + fmt.Sprintf(branches[0], "oneOf")}},
		"several of oneOf": {`{"oneOf":[{"type":"integer"},{"title":"few","maximum":9},{"type":"null"}]}`, `5`, Violations{
			`matches more than one branch of oneOf: oneOf/0, few`}},
		"branches in branches": {`{"anyOf":[{"anyOf":[{"type":"null"},{"minItems":2}]},false]}`, `[1]`, Violations{
			`matches no branch of anyOf (anyOf/0: matches no branch of anyOf (anyOf/0: must be null, not an array) (anyOf/1: must have at least 2 items, not 1)) (anyOf/1: is not allowed)`}},
		"then":                  {`{"if":{"required":["a"]},"then":{"required":["b"]},"else":false}`, `{"a":1}`, Violations{`lacks the property "b"`}},
		"else":                  {`{"if":{"required":["a"]},"then":false,"else":{"required":["b"]}}`, `{}`, Violations{`lacks the property "b"`}},
		"not":                   {`{"properties":{"a":{"not":{"type":"string"}}}}`, `{"a":"x"}`, Violations{`/a: must not match the schema of not`}},
		"contains":              {`{"contains":{"type":"null"},"minContains":2}`, `[null,1]`, Violations{`must have at least 2 items matching contains, not 1`}},
		"items that repeat":     {`{"uniqueItems":true}`, `[1,2,1.0]`, Violations{`/2: repeats item 0; the items must differ`}},
		"names":                 {`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, Violations{`/ab: has a name that does not match propertyNames (must have at most 1 character, not 2)`}},
		"what another requires": {`{"dependentRequired":{"a":["b","c"]}}`, `{"a":1,"c":1}`, Violations{`lacks the property "b", which "a" requires`}},
		"several types":         {`{"type":["integer","null"]}`, `1.5`, Violations{`must be an integer or null, not the number 1.5`}},
		"a fraction":            {`{"items":{"multipleOf":0.01}}`, `[19.99,0.07,0.075]`, Violations{`/2: must be a multiple of 0.01, not 0.075`}},
		"large integers":        {`{"const":9007199254740993}`, `9007199254740992`, Violations{`must be 9007199254740993, not 9007199254740992`}},
		"tiny numbers":          {`{"items":{"exclusiveMinimum":0}}`, `[1e-300,1e-99999999999]`, Violations{`/1: must be more than 0, not 1e-99999999999`}},
		"only what remains unevaluated": {`{"allOf":[{"properties":{"a":{"type":"null"}}}],"unevaluatedProperties":false}`, `{"a":1,"b":2}`, Violations{
			`/a: must be null, not the number 1`, `/b: is not allowed`}},
		"a name with slashes":  {`{"additionalProperties":false}`, `{"a/b~c":1}`, Violations{`/a~1b~0c: is not allowed`}},
		"a name of two lines":  {`{"additionalProperties":false}`, `{"a\nb\u001b[1m":1}`, Violations{`/a b: is not allowed`}},
		"a long enum":          {`{"enum":[0` + strings.Repeat(`,"x"`, 30) + `]}`, `{}`, Violations{`must be one of 0` + strings.Repeat(`, "x"`, 19) + `, and 11 more, not an object`}},
		"flaws come alone":     {weather, `{"a":1,"a":2}`, Violations{`at /a: the name "a" occurs twice`}},
		"no value comes alone": {weather, `{"city":"a",}`, Violations{`the answer holds no JSON value: line 1, column 12: trailing comma`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 5 { // the order is the same each time
				got := violationsOf(t, c.schema, c.answer)
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Many violations are counted, and few are shown.
func TestManyViolations(t *testing.T) {
	t.Parallel()
	for _, n := range []int{maxShown + 1, maxViolations + 1, 100_000} {
		got := violationsOf(t, `{"items":{"type":"null"}}`, "["+strings.Repeat("1,", n-1)+"1]")
		if len(got) != maxShown+1 || got[0] != "/0: must be null, not the number 1" || got[maxShown] != fmt.Sprintf("and %d more", n-maxShown) {
			t.Errorf("of %d violations %d are shown, the last is %q", n, len(got), got[len(got)-1])
		}
	}
	long := strings.Repeat("name", 1<<18)
	for _, schema := range []string{
		`{"additionalProperties":{"anyOf":[` + strings.Repeat(`{"type":"null","required":["a"]},`, 20) + `{"enum":[1]}]}}`,
		`{"additionalProperties":false}`, `{"additionalProperties":{"enum":[1,2]}}`, `{"additionalProperties":{"maxLength":1}}`,
	} {
		members := make(map[string]string)
		for i := range 100 {
			members[fmt.Sprintf("%s%d", long[:1<<10], i)] = long[:1<<12]
		}
		answer, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		got := violationsOf(t, schema, string(answer))
		if size := len(got.Error()); size > maxList+2*maxWords || !strings.HasPrefix(got[len(got)-1], "and ") {
			t.Errorf("%d bytes in %d violations, the last is %q", size, len(got), got[len(got)-1])
		}
	}
}

// The second turn gets the list that the error has.
func TestRepairGetsAllViolations(t *testing.T) {
	t.Parallel()
	const bad, list = `{"degrees":"x","sky":1}`, "\n- lacks the property \"city\"\n- /degrees: must be an integer, not the string \"x\"\n- /sky: is not allowed\n"
	for name, session := range map[string]string{"the same session": "s", "a new session": ""} {
		next, _, err := run(t, agent.Request{}, says(bad, func(r *agent.Result) { r.SessionID = session }), says(bad))
		var invalid *InvalidError
		if !errors.As(err, &invalid) || "\n- "+strings.Join(invalid.Violations, "\n- ")+"\n" != list || !strings.Contains(err.Error(), invalid.Violations.Error()) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if prompt := next.requests[1].Prompt; !strings.Contains(prompt, list) {
			t.Errorf("%s: the second prompt is %q", name, prompt)
		}
	}
}

// Secrets are masked before values and names are cut.
func TestViolationsMaskSecrets(t *testing.T) {
	t.Parallel()
	const secret = "sk-0123456789abcdef"
	mask := func(text string) string { return strings.ReplaceAll(text, secret, "***") }
	s, err := Compile([]byte(`{"additionalProperties":{"anyOf":[{"type":"null"},{"enum":["` + secret + `"]}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 70 {
		text := strings.Repeat("x", n) + secret
		_, got, _ := s.check(newBudget(), `{"`+text+`":"`+text+`"}`, mask)
		if line := got.Error(); strings.Contains(line, "sk-") {
			t.Errorf("%d bytes before it: %s", n, line)
		}
	}
}
