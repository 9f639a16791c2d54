// Command podmonitor prints the configuration of Prometheus that Prometheus Operator makes of PodMonitors.
//
// Standard input: PodMonitors and PrometheusRules as YAML; a field that these kinds do not have is an error.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus-operator/prometheus-operator/pkg/assets"
	"github.com/prometheus-operator/prometheus-operator/pkg/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"
)

func main() {
	configuration, err := generate(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "podmonitor:", err)
		os.Exit(1)
	}
	// What Prometheus Operator's config reloader puts in place of these, in the first pod of the first shard.
	fmt.Print(strings.NewReplacer("$(SHARD)", "0", "$(POD_NAME)", "prometheus-prometheus-0").Replace(string(configuration)))
}

func generate(input io.Reader) ([]byte, error) {
	monitors := map[string]*monitoringv1.PodMonitor{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(input))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		switch kind.Kind {
		case monitoringv1.PodMonitorsKind:
			var monitor monitoringv1.PodMonitor
			if err := yaml.UnmarshalStrict(document, &monitor); err != nil {
				return nil, err
			}
			monitors[monitor.Namespace+"/"+monitor.Name] = &monitor
		case monitoringv1.PrometheusRuleKind:
			if err := yaml.UnmarshalStrict(document, &monitoringv1.PrometheusRule{}); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("kind %q: must be PodMonitor or PrometheusRule", kind.Kind)
		}
	}
	server := &monitoringv1.Prometheus{ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "prometheus"}}
	server.Spec.ScrapeInterval = "1s"
	server.Spec.EvaluationInterval = "1s"
	generator, err := prometheus.NewConfigGenerator(nil, server)
	if err != nil {
		return nil, err
	}
	client := fake.NewSimpleClientset().CoreV1()
	store := assets.NewStoreBuilder(client, client)
	return generator.GenerateServerConfiguration(server, nil, monitors, nil, nil, store, nil, nil, nil, nil)
}
