/**
 * The doors of the clouds: what a cloud's path, credential and body are in the words of the vendor behind it. A door refuses as
 * its cloud does; what it lets through is answered by the dialect, and goes out in the cloud's framing.
 */
import { awsDoor, type AwsCloud } from './aws.ts';
import { azureDoor, type AzureCloud } from './azure.ts';
import type { Door } from './entered.ts';
import { googleDoor, type GoogleCloud } from './google.ts';

/** What the clouds know; whichever is absent lets everybody in. */
export interface Clouds {
  readonly aws?: AwsCloud;
  readonly google?: GoogleCloud;
  readonly azure?: AzureCloud;
}

export function cloudDoors({ aws, google, azure }: Clouds, now: () => number, mint: (prefix: string) => string): Door {
  const doors = [awsDoor(aws, now), googleDoor(google, now, mint), azureDoor(azure, now, mint)];
  return (request) => {
    for (const door of doors) {
      const entered = door(request);
      if (entered !== undefined) return entered;
    }
    return undefined;
  };
}
