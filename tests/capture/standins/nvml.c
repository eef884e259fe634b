/* A stand-in for libnvidia-ml.so.1: two devices that answer, refuse field by field, and can be lost mid-run.

   The file named by NVML_STANDIN is read at every call. A line "refuse FUNCTION" makes that function answer
   NVML_ERROR_NOT_SUPPORTED, "lost N" makes every function on device N answer NVML_ERROR_GPU_IS_LOST. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, GPU_IS_LOST = 15 };
typedef struct { int number; } device_t;
static device_t devices[2] = {{0}, {1}};
static unsigned long long counted_kib = 1000;

static int has_line(const char *wanted) {
  const char *path = getenv("NVML_STANDIN");
  FILE *file = path ? fopen(path, "r") : NULL;
  char line[256];
  int found = 0;
  while (file && !found && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\r\n")] = 0;
    found = !strcmp(line, wanted);
  }
  if (file) fclose(file);
  return found;
}

static int refusal(const char *function, device_t *device) {
  char wanted[256];
  snprintf(wanted, sizeof wanted, "lost %d", device->number);
  if (has_line(wanted)) return GPU_IS_LOST;
  snprintf(wanted, sizeof wanted, "refuse %s", function);
  return has_line(wanted) ? NOT_SUPPORTED : SUCCESS;
}

#define ANSWER(assignment) \
  int refused = refusal(__func__, device); \
  if (!refused) { assignment; } \
  return refused

int nvmlInitWithFlags(unsigned flags) { (void)flags; return SUCCESS; }
int nvmlShutdown(void) { return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t **device) { *device = &devices[index]; return SUCCESS; }
int nvmlDeviceGetUUID(device_t *device, char *uuid, unsigned length) {
  snprintf(uuid, length, "GPU-%d2345678", device->number);
  return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(device_t *device, unsigned *rates) {
  ANSWER(rates[0] = 75 + device->number; rates[1] = 40);
}
int nvmlDeviceGetMemoryInfo(device_t *device, unsigned long long *memory) {
  ANSWER(memory[0] = 80000000000ULL; memory[1] = 60000000000ULL; memory[2] = 20000000000ULL);
}
int nvmlDeviceGetPowerUsage(device_t *device, unsigned *milliwatts) { ANSWER(*milliwatts = 312500); }
int nvmlDeviceGetEnforcedPowerLimit(device_t *device, unsigned *milliwatts) { ANSWER(*milliwatts = 700000); }
int nvmlDeviceGetTemperature(device_t *device, int sensor, unsigned *degrees) { (void)sensor; ANSWER(*degrees = 61); }
int nvmlDeviceGetClockInfo(device_t *device, int type, unsigned *mhz) { ANSWER(*mhz = type == 1 ? 1980 : 2619); }
int nvmlDeviceGetPcieThroughput(device_t *device, int counter, unsigned *kib) { ANSWER(*kib = counter ? 2000 : 1000); }

typedef struct {
  uint32_t field, scope;
  int64_t timestamp, latency;
  int type, status;
  unsigned long long value;
} field_t;

int nvmlDeviceGetFieldValues(device_t *device, int count, field_t *fields) {
  int refused = refusal(__func__, device);
  for (int i = 0; i < count; i++) {
    fields[i].status = refused;
    fields[i].value = counted_kib += 1000000;
  }
  return refused == GPU_IS_LOST ? refused : SUCCESS;
}
