package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	deviceplugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

// newDevicePluginCommand serves devices that exist in name only, over the kubelet's own protocol: the kubelet
// advertises, allocates and frees them as it would a vendor's, and registers them again after a restart, which a
// capacity patched onto the node's status does not survive.
func newDevicePluginCommand() *cobra.Command {
	var resource string
	var count int
	command := &cobra.Command{
		Use:  "device-plugin",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			devices := make([]*pluginapi.Device, count)
			for i := range devices {
				devices[i] = &pluginapi.Device{ID: fmt.Sprintf("device-%d", i), Health: pluginapi.Healthy}
			}
			socket := filepath.Join(pluginapi.DevicePluginPath, strings.ReplaceAll(resource, "/", "_")+".sock")
			plugin := deviceplugin.NewDevicePluginStub(klog.Background(), devices, socket, resource, false, false)
			plugin.SetAllocFunc(allocate)
			ctx := command.Context()
			if err := plugin.Start(ctx); err != nil {
				return fmt.Errorf("serve %s: %w", socket, err)
			}
			if err := plugin.Register(ctx, pluginapi.KubeletSocket, resource, pluginapi.DevicePluginPath); err != nil {
				return fmt.Errorf("register %s with the kubelet: %w", resource, err)
			}
			plugin.Watch(ctx, pluginapi.KubeletSocket, resource, pluginapi.DevicePluginPath)
			return nil
		},
	}
	command.Flags().StringVar(&resource, "resource", "nvidia.com/gpu", "extended resource to advertise")
	command.Flags().IntVar(&count, "count", 1, "number of devices")
	return command
}

// allocate answers for every container with nothing to set up: a kubelet refuses the pod if an answer is missing.
func allocate(request *pluginapi.AllocateRequest, _ map[string]*pluginapi.Device) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{})
	}
	return response, nil
}
